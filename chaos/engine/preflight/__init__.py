"""Preflight: checks of a cluster and its hosts before a fault, on data that was collected beforehand."""
