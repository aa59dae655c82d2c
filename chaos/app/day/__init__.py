"""Runs game days: their state in the cluster, what a day waits for, and its entries as runs."""
