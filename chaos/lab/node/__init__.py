"""The simulated machine."""
