"""Takes a snapshot of a cluster."""
