"""Runs in the process of a simulated cluster, and what many of them forecast."""
