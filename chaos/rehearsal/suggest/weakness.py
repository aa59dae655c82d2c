"""A weakness: something in a snapshot that makes a cluster fragile, found without simulating anything."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class WeaknessKind(StrEnum):
    """In the order of reports."""

    SINGLE_REPLICA = "single-replica"
    BARE_POD = "bare-pod"
    ONE_NODE = "one-node"
    ONE_ZONE = "one-zone"
    KEY_SERVICE = "key-service"
    STATEFUL_ON_NODE = "stateful-on-node"
    LOCAL_VOLUME = "local-volume"
    ATTACHED_VOLUME = "attached-volume"
    NO_ROOM = "no-room"
    STAYS_FOREVER = "stays-forever"
    STAYS_LONG = "stays-long"
    BUDGET_BLOCKS = "budget-blocks"
    BUDGET_OVERLAP = "budget-overlap"
    BUDGET_IDLE = "budget-idle"
    NO_BUDGET = "no-budget"
    BUDGET_ABOVE_AUTOSCALER = "budget-above-autoscaler"
    AUTOSCALER_ONE = "autoscaler-one"
    AUTOSCALER_FIXED = "autoscaler-fixed"
    AUTOSCALER_FULL = "autoscaler-full"
    SHUTDOWN_OFF = "shutdown-off"
    CRITICAL_SECONDS = "critical-seconds"
    GRACE_CUT = "grace-cut"
    DAEMON_MISSING = "daemon-missing"
    INTERFERES = "interferes"


TITLES: Mapping[WeaknessKind, str] = {
    WeaknessKind.SINGLE_REPLICA: "A single replica",
    WeaknessKind.BARE_POD: "A pod that nothing replaces",
    WeaknessKind.ONE_NODE: "All replicas on one node",
    WeaknessKind.ONE_ZONE: "All replicas in one zone",
    WeaknessKind.KEY_SERVICE: "A service for the whole cluster on one node",
    WeaknessKind.STATEFUL_ON_NODE: "A StatefulSet that sticks to a dead node",
    WeaknessKind.LOCAL_VOLUME: "Data on one node",
    WeaknessKind.ATTACHED_VOLUME: "A volume that only one node can have",
    WeaknessKind.NO_ROOM: "Replacements that fit nowhere",
    WeaknessKind.STAYS_FOREVER: "Pods that stay on a dead node for ever",
    WeaknessKind.STAYS_LONG: "Pods that stay on a dead node for long",
    WeaknessKind.BUDGET_BLOCKS: "A budget that blocks every drain",
    WeaknessKind.BUDGET_OVERLAP: "Pods of several budgets",
    WeaknessKind.BUDGET_IDLE: "A budget that protects nothing",
    WeaknessKind.NO_BUDGET: "No budget",
    WeaknessKind.BUDGET_ABOVE_AUTOSCALER: "A budget above the autoscaler's minimum",
    WeaknessKind.AUTOSCALER_ONE: "An autoscaler that goes down to one replica",
    WeaknessKind.AUTOSCALER_FIXED: "An autoscaler that cannot scale",
    WeaknessKind.AUTOSCALER_FULL: "An autoscaler without room",
    WeaknessKind.SHUTDOWN_OFF: "Nodes without graceful shutdown",
    WeaknessKind.CRITICAL_SECONDS: "Too few seconds for critical pods",
    WeaknessKind.GRACE_CUT: "Grace periods that a shutdown cuts short",
    WeaknessKind.DAEMON_MISSING: "A DaemonSet that is not on every node",
    WeaknessKind.INTERFERES: "Controllers that would interfere",
}


class Weakness(Struct, frozen=True):
    """``subject``: the object that it is about, as ``StatefulSet shop/db``, or ``cluster``. ``objects``: all of them.

    ``numbers``: by what they count. ``helps``: what would help, an imperative; ``what_if``: the same as a change of
    ``nodefall rehearse --what-if``, "" if there is none.
    """

    kind: WeaknessKind
    subject: str
    objects: tuple[str, ...]
    numbers: dict[str, int]
    sentence: str
    helps: str
    what_if: str = ""

    @property
    def title(self) -> str:
        """The name of the kind, for people."""
        return TITLES[self.kind]


CLUSTER = "cluster"
