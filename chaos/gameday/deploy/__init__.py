"""Manifests that run a game day on the cluster itself; pure."""
