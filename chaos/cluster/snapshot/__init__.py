"""Snapshots of a cluster: their fields, anonymization and measurements. Pure."""
