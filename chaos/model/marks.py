"""Names by which what is kept in a cluster is found: by those who write it, and by the rights that this needs."""

from __future__ import annotations

RUN = "nodefall.dev/run"  # label and annotation: the run's ID
MANAGED_BY = {"app.kubernetes.io/managed-by": "nodefall"}  # label
LOCK = "nodefall"  # the Lease by which one run at a time is at work
LOCK_NAMESPACE = "kube-system"  # it is there in every cluster
NODE_LEASES = "kube-node-lease"  # namespace of the kubelets' Leases
NODE_EVENTS = "default"  # namespace of Events about Nodes, which are in none
