"""Admission of Jobs. pkg/apis/batch/v1/defaults.go, validation.go; pkg/registry/batch/job/strategy.go."""

from __future__ import annotations

import uuid
from typing import Any

from chaos.lab.apiserver.admission.defaults import InvalidError, check_pod_spec, default_pod_spec
from chaos.lab.objects.accessors import Object, name_of
from chaos.lab.sim.clock import SimClock

_INDEXED = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
_NUMBERS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_MUTABLE = {"parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend"}
_CONTROLLER = "kubernetes.io/job-controller"


def admit_job(job: Object, sim: SimClock) -> None:
    """Check and default a new Job in place; add its unique selector and labels. Raises InvalidError."""
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector") or spec.get("selector"):
        raise InvalidError("spec.selector: Invalid value: `selector` not auto-generated: not simulated by the lab")
    check_job(spec)
    uid = str(uuid.UUID(int=sim.rng.getrandbits(128), version=4))
    job["metadata"]["uid"] = uid
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name_of(job)}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    job["status"] = {}


def check_job(spec: dict[str, Any]) -> None:
    """Check and default a Job's spec in place. Raises InvalidError."""
    if spec.get("completionMode", "NonIndexed") != "NonIndexed" or any(spec.get(key) for key in _INDEXED):
        raise InvalidError(f"the lab simulates no completionMode but NonIndexed, and none of {', '.join(_INDEXED)}")
    if spec.get("managedBy", _CONTROLLER) != _CONTROLLER:
        raise InvalidError(f"spec.managedBy: the lab has no controller of Jobs but {_CONTROLLER}")
    for key in _NUMBERS:
        value = spec.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise InvalidError(f"spec.{key}: Invalid value: {value!r}: must be a whole number, at least 0")
    _check_template(spec)
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


def check_job_update(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Check that only mutable fields of a Job differ. Raises InvalidError."""
    check_job(new)
    for key in new.keys() | old.keys():
        if key not in _MUTABLE and new.get(key) != old.get(key):
            raise InvalidError(f"spec.{key}: Invalid value: field is immutable")


def _check_template(spec: dict[str, Any]) -> None:
    template = spec.get("template") or {}
    body = template.setdefault("spec", {})
    if body.get("restartPolicy") not in ("OnFailure", "Never"):
        raise InvalidError('spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"')
    check_pod_spec(body, (template.get("metadata") or {}).get("annotations") or {})
    default_pod_spec(body)


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
