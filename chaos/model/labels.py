"""Names by which what is kept in a cluster is found: by those who write it, and by the rights that this needs."""

from __future__ import annotations

RUN_LABEL = "nodefall.dev/run"  # label and annotation: the run's ID
MANAGED_BY_LABEL = {"app.kubernetes.io/managed-by": "nodefall"}  # label
LOCK_NAME = "nodefall"  # the Lease by which one run at a time is at work
LOCK_NAMESPACE = "kube-system"  # it is there in every cluster
NODE_LEASE_NAMESPACE = "kube-node-lease"  # namespace of the kubelets' Leases
NODE_EVENT_NAMESPACE = "default"  # namespace of Events about Nodes, which are in none
