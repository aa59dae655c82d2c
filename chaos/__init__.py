"""nodefall: make Kubernetes nodes fall over on purpose and prove what the cluster did about it."""

__version__ = "0.3.0.dev0"
