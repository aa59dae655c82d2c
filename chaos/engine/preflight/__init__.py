"""Preflight: checks of a cluster and its hosts before a fault, on what was collected beforehand."""
