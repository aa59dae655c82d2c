"""Admission of Deployments, ReplicaSets, StatefulSets and DaemonSets. pkg/apis/apps/v1, validation.

Admission of Jobs. pkg/apis/batch/v1/defaults.go, validation.go; pkg/registry/batch/job/strategy.go.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from chaos.lab.apiserver.admission import PERCENT, InvalidError, check_claim, check_pod_spec, default_pod_spec
from chaos.lab.objects import Object, name_of
from chaos.lab.sim import SimClock

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


def admit_workload(plural: str, obj: Object, grace: int = 30) -> None:
    """Check and default a workload's spec in place, on create and update. Raises InvalidError.

    ``grace``: the default of terminationGracePeriodSeconds, also below.
    """
    spec = obj.setdefault("spec", {})
    _admit_template(spec, grace)
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


def _admit_template(spec: dict[str, Any], grace: int) -> None:
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
    default_pod_spec(template["spec"], grace)
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


_INDEXED = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
_NUMBERS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_MUTABLE = {"parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend"}
_CONTROLLER = "kubernetes.io/job-controller"


def admit_job(job: Object, sim: SimClock, grace: int = 30) -> None:
    """Check and default a new Job in place; add its unique selector and labels. Raises InvalidError."""
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector") or spec.get("selector"):
        raise InvalidError("spec.selector: Invalid value: `selector` not auto-generated: not simulated by the lab")
    check_job(spec, grace)
    uid = str(uuid.UUID(int=sim.rng.getrandbits(128), version=4))
    job["metadata"]["uid"] = uid
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name_of(job)}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    job["status"] = {}


def check_job(spec: dict[str, Any], grace: int = 30) -> None:
    """Check and default a Job's spec in place. Raises InvalidError."""
    if spec.get("completionMode", "NonIndexed") != "NonIndexed" or any(spec.get(key) for key in _INDEXED):
        raise InvalidError(f"the lab simulates no completionMode but NonIndexed, and none of {', '.join(_INDEXED)}")
    if spec.get("managedBy", _CONTROLLER) != _CONTROLLER:
        raise InvalidError(f"spec.managedBy: the lab has no controller of Jobs but {_CONTROLLER}")
    for key in _NUMBERS:
        value = spec.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise InvalidError(f"spec.{key}: Invalid value: {value!r}: must be a whole number, at least 0")
    _check_template(spec, grace)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    policy = spec.get("podFailurePolicy")
    for key, value in {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}.items():
        if spec.get(key) is None:
            spec[key] = value
    if policy is not None:
        _check_policy(policy, spec["template"]["spec"])
    replacement = spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed")
    if replacement not in (("Failed",) if policy is not None else ("Failed", "TerminatingOrFailed")):
        raise InvalidError(f"spec.podReplacementPolicy: Unsupported value: {replacement!r}")


def check_job_update(new: dict[str, Any], old: dict[str, Any], grace: int = 30) -> None:
    """Check that only mutable fields of a Job differ. Raises InvalidError."""
    check_job(new, grace)
    for key in new.keys() | old.keys():
        if key not in _MUTABLE and new.get(key) != old.get(key):
            raise InvalidError(f"spec.{key}: Invalid value: field is immutable")


def _check_template(spec: dict[str, Any], grace: int) -> None:
    template = spec.get("template") or {}
    body = template.setdefault("spec", {})
    if body.get("restartPolicy") not in ("OnFailure", "Never"):
        raise InvalidError('spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"')
    check_pod_spec(body, (template.get("metadata") or {}).get("annotations") or {})
    default_pod_spec(body, grace)


def _check_policy(policy: Object, template: Object) -> None:
    if template["restartPolicy"] != "Never":
        raise InvalidError('restartPolicy: only "Never" is supported when podFailurePolicy is specified')
    names = {item["name"] for item in template["containers"]}
    for index, rule in enumerate(policy.get("rules") or []):
        where = f"spec.podFailurePolicy.rules[{index}]"
        if rule.get("action") not in ("Ignore", "FailJob", "Count"):
            raise InvalidError(f"{where}.action: the lab simulates Ignore, FailJob and Count")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if bool(codes) == bool(conditions):
            raise InvalidError(f"{where}: specifying one of onExitCodes and onPodConditions is required")
        if codes:
            _check_exit_codes(codes, names, where)
        for pattern in conditions or []:
            if not pattern.get("type") or pattern.setdefault("status", "True") not in ("True", "False", "Unknown"):
                raise InvalidError(f"{where}.onPodConditions: a type and a status True, False or Unknown are required")


def _check_exit_codes(codes: Object, names: set[str], where: str) -> None:
    values = codes.get("values")
    if codes.get("operator") not in ("In", "NotIn") or not values or not all(isinstance(item, int) for item in values):
        raise InvalidError(f"{where}.onExitCodes: an operator In or NotIn and numbers as values are required")
    if codes["operator"] == "In" and 0 in values:
        raise InvalidError(f"{where}.onExitCodes.values: must not be 0 for the In operator")
    if codes.get("containerName") is not None and codes["containerName"] not in names:
        raise InvalidError(f"{where}.onExitCodes.containerName: must be one of the container names of the template")
