"""The simulated kubelet."""
