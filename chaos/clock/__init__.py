"""Cluster time."""
