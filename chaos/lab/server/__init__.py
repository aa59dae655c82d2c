"""The processes and ports of a lab."""
