"""Kubernetes objects as plain JSON dictionaries."""
