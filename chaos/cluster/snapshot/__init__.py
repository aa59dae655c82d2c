"""Snapshots of a cluster: which fields they have, how they are anonymized, what is measured. Pure."""
