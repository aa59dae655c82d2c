"""Admission of Deployments, ReplicaSets, StatefulSets and DaemonSets. pkg/apis/apps/v1, validation."""

from __future__ import annotations

import json
from typing import Any

from chaos.lab.apiserver.admission.defaults import PERCENT, InvalidError, check_pod_spec, default_pod_spec
from chaos.lab.apiserver.admission.storage import check_claim
from chaos.lab.objects.accessors import Object

WORKLOADS = ("deployments", "replicasets", "statefulsets", "daemonsets")
# Counts without omitempty in k8s.io/api/apps/v1/types.go
_COUNTS = {
    "replicasets": ("replicas",),
    "statefulsets": ("replicas", "availableReplicas"),
    "daemonsets": ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
}
_STATEFUL_SET_MUTABLE = {
    "replicas", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
}  # fmt: skip


def admit_workload(plural: str, obj: Object) -> None:
    """Check and default a workload's spec in place, on create and update. Raises InvalidError."""
    spec = obj.setdefault("spec", {})
    _admit_template(spec)
    if not isinstance(spec.setdefault("minReadySeconds", 0), int) or spec["minReadySeconds"] < 0:
        raise InvalidError(f"spec.minReadySeconds: Invalid value: {spec['minReadySeconds']!r}")
    if not spec["minReadySeconds"]:
        del spec["minReadySeconds"]
    if plural != "daemonsets":
        spec.setdefault("replicas", 1)
    if plural != "replicasets":
        spec.setdefault("revisionHistoryLimit", 10)
    if plural == "deployments":
        _admit_deployment(spec)
    elif plural == "statefulsets":
        _admit_stateful_set(spec)
    elif plural == "daemonsets":
        _admit_daemon_set(spec)


def new_status(plural: str) -> Object:
    """Status of a new workload."""
    return dict.fromkeys(_COUNTS.get(plural, ()), 0)


def check_workload_update(plural: str, new: dict[str, Any], old: dict[str, Any]) -> None:
    """Check that no immutable field differs. Raises InvalidError."""
    if new.get("selector") != old.get("selector"):
        raise InvalidError(f"spec.selector: Invalid value: {json.dumps(new.get('selector'))}: field is immutable")
    if plural == "statefulsets":
        for key in sorted((new.keys() | old.keys()) - _STATEFUL_SET_MUTABLE):
            if new.get(key) != old.get(key):
                raise InvalidError(f"spec: Forbidden: updates to {key} are forbidden")


def _admit_template(spec: dict[str, Any]) -> None:
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    match_labels = (spec.get("selector") or {}).get("matchLabels")
    if not match_labels:
        raise InvalidError("spec.selector: Required value: the lab needs matchLabels")
    if any(labels.get(key) != value for key, value in match_labels.items()):
        reason = f"Invalid value: {json.dumps(labels)}: `selector` does not match template `labels`"
        raise InvalidError(f"spec.template.metadata.labels: {reason}")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    check_pod_spec(template.setdefault("spec", {}), annotations)
    default_pod_spec(template["spec"])
    if template["spec"]["restartPolicy"] != "Always":
        raise InvalidError('spec.template.spec.restartPolicy: Unsupported value: supported values: "Always"')


def _admit_deployment(spec: dict[str, Any]) -> None:
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        for key in ("maxUnavailable", "maxSurge"):
            _check_amount(f"spec.strategy.rollingUpdate.{key}", rolling.setdefault(key, "25%"))
    elif strategy["type"] != "Recreate" or strategy.get("rollingUpdate"):
        raise InvalidError("spec.strategy: type is RollingUpdate or Recreate, and Recreate has no rollingUpdate")
    spec.setdefault("progressDeadlineSeconds", 600)


def _admit_stateful_set(spec: dict[str, Any]) -> None:
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("serviceName", "")
    rolling = _update_strategy(spec)
    if rolling is not None:
        rolling.pop("maxUnavailable", None)  # dropped while its feature gate is off (facts 0)
        partition = rolling.setdefault("partition", 0)
        if not isinstance(partition, int) or partition < 0:
            raise InvalidError(f"spec.updateStrategy.rollingUpdate.partition: Invalid value: {partition!r}")
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for key in ("whenDeleted", "whenScaled"):
        if policy.setdefault(key, "Retain") not in ("Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            raise InvalidError(f"{where}: Unsupported value: {policy[key]!r}: supported values: Delete, Retain")
    for item in spec.get("volumeClaimTemplates") or []:
        if not (item.get("metadata") or {}).get("name"):
            raise InvalidError("spec.volumeClaimTemplates[0].metadata.name: Required value")
        check_claim(item.get("spec") or {})


def _admit_daemon_set(spec: dict[str, Any]) -> None:
    rolling = _update_strategy(spec)
    if rolling is not None:
        where = "spec.updateStrategy.rollingUpdate"
        _check_amount(f"{where}.maxUnavailable", rolling.setdefault("maxUnavailable", 1))
        if rolling.setdefault("maxSurge", 0) not in (0, "0%"):
            raise InvalidError(f"{where}.maxSurge: the lab does not simulate the surge of DaemonSets")
        if rolling["maxUnavailable"] in (0, "0%"):
            raise InvalidError(f"{where}.maxUnavailable: cannot be 0 when maxSurge is 0")


def _update_strategy(spec: dict[str, Any]) -> dict[str, Any] | None:
    """Settings of RollingUpdate, None for OnDelete."""
    strategy = spec.setdefault("updateStrategy", {})
    kind = strategy.setdefault("type", "RollingUpdate")
    if kind == "RollingUpdate":
        rolling: dict[str, Any] = strategy.setdefault("rollingUpdate", {})
        return rolling
    if kind != "OnDelete" or strategy.get("rollingUpdate"):
        raise InvalidError("spec.updateStrategy: type is RollingUpdate or OnDelete, and OnDelete has no rollingUpdate")
    return None


def _check_amount(where: str, amount: object) -> None:
    number = isinstance(amount, int) and not isinstance(amount, bool) and amount >= 0
    if not number and not (isinstance(amount, str) and PERCENT.fullmatch(amount)):
        raise InvalidError(f"{where}: {amount!r} is neither a number nor a percentage")
