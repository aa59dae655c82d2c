"""A lab from a snapshot of a cluster."""
