"""Power control of simulated machines."""
