"""Labels, names and namespaces: of the objects that nodefall writes to a cluster, and of roles of Nodes.

A Job of Kubernetes that runs a game day is known by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RUN_LABEL = "nodefall.dev/run"  # label and annotation: the run's ID
MANAGED_BY_LABEL = {"app.kubernetes.io/managed-by": "nodefall"}  # label
GAME_DAY_LABEL = "nodefall.dev/gameday"  # label: the name of the game day
GAME_DAY_PREFIX = "nodefall-gameday-"  # of the ConfigMap with its state, and of the Lease of who works on it
LOCK_NAME = "nodefall"  # Lease that admits one run at a time
LOCK_NAMESPACE = "kube-system"  # exists in every cluster
ETCD_LABEL = "node-role.kubernetes.io/etcd"  # of Nodes: k3s and RKE2 set it
# Labels of Nodes that run a part of the control plane; etcd may have separate nodes.
CONTROL_PLANE_LABELS = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    ETCD_LABEL,
)
# Of Nodes. A zone is in one region only, and its name is unique: kubernetes.io/docs, "Well-Known Labels".
ZONE_LABEL = "topology.kubernetes.io/zone"
HOSTNAME_LABEL = "kubernetes.io/hostname"
NODE_LEASE_NAMESPACE = "kube-node-lease"  # namespace of the kubelets' Leases
NODE_EVENT_NAMESPACE = "default"  # namespace of Events about Nodes, as Nodes have none
FIELD_MANAGER = "nodefall"  # of the fields that nodefall writes, in managedFields
POD_UID_ENV = "NODEFALL_POD_UID"  # variable: the UID of the pod that nodefall runs in, by the downward API
FLEET_LABEL = "nodefall.dev/fleet"  # label of what a fleet has applied: its name
DAY_ANNOTATION = "nodefall.dev/day"  # annotation of a Job: the ID of the day that it runs
PLAN_ANNOTATION = "nodefall.dev/plan-hash"  # annotation of a Job: the plan of that day
HELPER_LABEL = "nodefall.dev/transport"  # label of the pods of transport pod
HELPER_SESSION = "nodefall.dev/session"  # label of such pods: the process that made them
HELPER_NODE = "nodefall.dev/node"  # annotation of such pods: the node whose host they give access to


_MAX_LABEL = 63  # characters of a label's value, and of a namespace's name


def name_from_run(run: str, prefix: str = "") -> str:
    """``prefix`` and the ID of a run, in at most 63 characters: a long one loses letters of its name, not its end."""
    room = _MAX_LABEL - len(prefix)
    name, _, unique = run.rpartition("-")
    head = name[: room - len(unique) - 1].rstrip("-.")
    return prefix + (run if len(run) <= room else f"{head}-{unique}"[-room:])


@dataclass(frozen=True, slots=True)
class JobView:
    """A Job. ``day`` and ``plan_hash``: what it was created for. ``reason``: why it failed, or its pod does not run."""

    name: str
    uid: str
    day: str
    plan_hash: str
    status: Literal["active", "complete", "failed"]
    reason: str = ""

    @property
    def is_active(self) -> bool:
        return self.status == "active"
