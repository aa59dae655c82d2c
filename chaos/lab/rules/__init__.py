"""Rules: what Kubernetes, systemd and Windows do, as one frozen record of values per component.

The defaults are what the real components do; a component reads its record and knows no breakage. A field is a number,
a name, a reason, an order or a small function, named as Kubernetes' flags and source name it. To simulate another
behavior, replace fields: :mod:`chaos.lab.breakages` lists named replacements.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.lab.rules.control_plane import (
    ApiServerRules,
    AttachDetachRules,
    DisruptionRules,
    EvictionApiRules,
    NodeLifecycleRules,
    PodGcRules,
    TaintEvictionRules,
    WorkloadRules,
)
from chaos.lab.rules.node import (
    LogindRules,
    NodePressureRules,
    NodeShutdownRules,
    NodeStatusRules,
    PodRules,
    WindowsRules,
)
from chaos.lab.rules.scheduling import SchedulerRules, TolerationRules

__all__ = [
    "ApiServerRules",
    "AttachDetachRules",
    "DisruptionRules",
    "EvictionApiRules",
    "LogindRules",
    "NodeLifecycleRules",
    "NodePressureRules",
    "NodeShutdownRules",
    "NodeStatusRules",
    "PodGcRules",
    "PodRules",
    "Rules",
    "SchedulerRules",
    "TaintEvictionRules",
    "TolerationRules",
    "WindowsRules",
    "WorkloadRules",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The rules of all components, each record by the component's name."""

    api_server: ApiServerRules = field(default_factory=ApiServerRules)
    eviction_api: EvictionApiRules = field(default_factory=EvictionApiRules)
    node_lifecycle: NodeLifecycleRules = field(default_factory=NodeLifecycleRules)
    taint_eviction: TaintEvictionRules = field(default_factory=TaintEvictionRules)
    pod_gc: PodGcRules = field(default_factory=PodGcRules)
    disruption: DisruptionRules = field(default_factory=DisruptionRules)
    attach_detach: AttachDetachRules = field(default_factory=AttachDetachRules)
    workloads: WorkloadRules = field(default_factory=WorkloadRules)
    scheduler: SchedulerRules = field(default_factory=SchedulerRules)
    tolerations: TolerationRules = field(default_factory=TolerationRules)
    node_status: NodeStatusRules = field(default_factory=NodeStatusRules)
    pods: PodRules = field(default_factory=PodRules)
    node_shutdown: NodeShutdownRules = field(default_factory=NodeShutdownRules)
    node_pressure: NodePressureRules = field(default_factory=NodePressureRules)
    logind: LogindRules = field(default_factory=LogindRules)
    windows: WindowsRules = field(default_factory=WindowsRules)
