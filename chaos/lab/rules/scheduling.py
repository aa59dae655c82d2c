"""Rules of tolerations and of kube-scheduler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TolerationRules:
    """staging/src/k8s.io/api/core/v1/toleration.go.

    ``empty_effect``: effects that a toleration without one matches. ``exists_matches``, ``equal_matches``: operators.
    ``one_suffices``: a pod that tolerates one of a node's taints tolerates all of them.
    """

    compares_keys: bool = True
    compares_effects: bool = True
    compares_values: bool = True
    default_operator: str = "Equal"
    exists_compares_values: bool = False
    exists_matches: bool = True
    equal_matches: bool = True
    empty_key_matches: bool = True
    empty_effect: frozenset[str] = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})
    one_suffices: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerRules:
    """kube-scheduler; facts 12. ``ignored_effects``: of taints other than Kubernetes' own.

    ``filtered_effects``: of taints that keep pods off, ``scored_effects``: of those that make a node worse.
    ``tolerations_attract``: pods to the nodes whose taints they tolerate. ``packs_pods``: in as few domains of their
    topologySpreadConstraints as possible. ``remembers_taints``: other than Kubernetes' own, after their removal.
    ``ignored_taints``, ``untolerable_taints``: keys of taints that it does not see, or that no toleration matches.
    ``heeded_conditions``: a node with one of them is not chosen. ``overcommit``: factor for the allocatable resources.
    ``fits_without_capacity``: a node that reports no capacity takes pods.
    """

    ignored_effects: frozenset[str] = frozenset()
    ignored_taints: frozenset[str] = frozenset()
    untolerable_taints: frozenset[str] = frozenset()
    heeded_conditions: frozenset[str] = frozenset()
    compares_selector_values: bool = True  # of nodeSelector
    overcommit: float = 1.0
    fits_without_capacity: bool = False
    filtered_effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
    scored_effects: tuple[str, ...] = ("PreferNoSchedule",)
    tolerations_attract: bool = False
    remembers_taints: bool = False
    retries_on_node_changes: bool = True
    heeds_unschedulable: bool = True
    heeds_node_selectors: bool = True
    heeds_requests: bool = True
    packs_pods: bool = False
    preempts: bool = True
    preempts_equal_priority: bool = False
    adds_disruption_target: bool = True
    disruption_target_reason: str = "PreemptionByScheduler"
    disruption_target_message: str = "default-scheduler: preempting to accommodate a higher priority pod"
