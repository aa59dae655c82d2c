"""Labels, names and namespaces of the objects that nodefall writes to a cluster."""

from __future__ import annotations

RUN_LABEL = "nodefall.dev/run"  # label and annotation: the run's ID
MANAGED_BY_LABEL = {"app.kubernetes.io/managed-by": "nodefall"}  # label
LOCK_NAME = "nodefall"  # Lease that admits one run at a time
LOCK_NAMESPACE = "kube-system"  # exists in every cluster
NODE_LEASE_NAMESPACE = "kube-node-lease"  # namespace of the kubelets' Leases
NODE_EVENT_NAMESPACE = "default"  # namespace of Events about Nodes, as Nodes have none
