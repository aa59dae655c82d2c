"""Admission of what deployments bring along: CronJobs, NetworkPolicies and RBAC. Checked and stored, without an effect.

Sources: pkg/apis/batch/validation/validation.go, pkg/apis/networking/validation/validation.go and v1/defaults.go,
pkg/apis/rbac/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import ZoneInfo

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.apiserver.admission.workloads import check_job
from chaos.lab.objects.accessors import Object, name_of

_MAX_CRON_JOB_NAME = 52
# As robfig/cron/v3 parses it, which knows neither # nor L.
_CRON_FIELD = re.compile(r"[0-9A-Za-z*?,/-]+")
_POLICIES = ("Allow", "Forbid", "Replace")
_DIRECTIONS = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_RBAC_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("User", "Group", "ServiceAccount")
# The other kinds that are stored; their status is empty.
STORED = ("cronjobs", "networkpolicies", "clusterroles", "clusterrolebindings", "roles", "rolebindings")


def admit_stored(plural: str, obj: Object, before: Object | None = None) -> None:
    """Check and default an object of ``STORED`` in place. ``before``: what it replaces. Raises InvalidError."""
    if plural == "cronjobs":
        _admit_cron_job(obj)
    elif plural == "networkpolicies":
        _admit_policy(obj.setdefault("spec", {}))
    elif plural in ("roles", "clusterroles"):
        _check_rules(obj.get("rules") or [], namespaced=plural == "roles")
    else:
        _check_binding(obj, namespaced=plural == "rolebindings")
        if before is not None and before["roleRef"] != obj["roleRef"]:
            raise InvalidError("roleRef: Invalid value: cannot change roleRef")


def _admit_cron_job(obj: Object) -> None:
    spec: dict[str, Any] = obj.get("spec") or {}
    if len(name_of(obj)) > _MAX_CRON_JOB_NAME:
        raise InvalidError("metadata.name: Invalid value: must be no more than 52 characters")
    schedule = str(spec.get("schedule") or "")
    fields = schedule.split()
    if len(fields) != 5 or not all(_CRON_FIELD.fullmatch(field) for field in fields) or _has_last(fields):
        raise InvalidError(f"spec.schedule: Invalid value: {schedule!r}: expected five fields of cron")
    if zone := spec.get("timeZone"):
        _check_zone(zone)
    for key, value in {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3}.items():
        spec.setdefault(key, value)
    spec.setdefault("failedJobsHistoryLimit", 1)
    if spec["concurrencyPolicy"] not in _POLICIES:
        raise InvalidError(f"spec.concurrencyPolicy: Unsupported value: {spec['concurrencyPolicy']!r}")
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None and (not isinstance(deadline, int) or deadline < 0):
        raise InvalidError(f"spec.startingDeadlineSeconds: Invalid value: {deadline!r}")
    check_job((spec.get("jobTemplate") or {}).get("spec") or {})
    obj.setdefault("status", {})


def _has_last(fields: list[str]) -> bool:
    return bool(re.search(r"\bL[W]?\b|[0-9]L", f"{fields[2]} {fields[4]}", re.IGNORECASE))


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError) as error:
        raise InvalidError(f"spec.timeZone: Invalid value: {zone!r}: unknown time zone {zone}") from error


def _admit_policy(spec: dict[str, Any]) -> None:
    spec.setdefault("podSelector", {})
    types = spec.setdefault("policyTypes", [*_DIRECTIONS] if spec.get("egress") else ["Ingress"])
    if any(each not in _DIRECTIONS for each in types):
        raise InvalidError(f"spec.policyTypes: Unsupported value: {types!r}")
    for rule in [*(spec.get("ingress") or []), *(spec.get("egress") or [])]:
        for port in rule.get("ports") or []:
            number, protocol = port.get("port"), port.setdefault("protocol", "TCP")
            if protocol not in _PROTOCOLS:
                raise InvalidError(f"spec.egress.ports.protocol: Unsupported value: {protocol!r}")
            if isinstance(number, int) and not 1 <= number <= 65535:
                raise InvalidError(f"spec.egress.ports.port: Invalid value: {number}: must be between 1 and 65535")


def _check_rules(rules: list[dict[str, Any]], *, namespaced: bool) -> None:
    for index, rule in enumerate(rules):
        where = f"rules[{index}]"
        if not rule.get("verbs"):
            raise InvalidError(f"{where}.verbs: Required value: verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if namespaced:
                raise InvalidError(f"{where}.nonResourceURLs: namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                raise InvalidError(f"{where}.nonResourceURLs: rules cannot apply to both resources and URLs")
        elif not rule.get("apiGroups") or not rule.get("resources"):
            raise InvalidError(
                f"{where}: Required value: resource rules must supply at least one api group and resource"
            )


def _check_binding(obj: Object, *, namespaced: bool) -> None:
    reference = obj.get("roleRef") or {}
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if reference.get("apiGroup") != _RBAC_GROUP or reference.get("kind") not in kinds or not reference.get("name"):
        raise InvalidError(f"roleRef: Invalid value: {reference!r}")
    for index, subject in enumerate(obj.get("subjects") or []):
        kind = subject.get("kind")
        if kind not in _SUBJECTS or not subject.get("name"):
            raise InvalidError(f"subjects[{index}]: Invalid value: {subject!r}")
        if kind == "ServiceAccount":
            if not subject.get("namespace"):
                raise InvalidError(f"subjects[{index}].namespace: Required value")
        else:
            subject.setdefault("apiGroup", _RBAC_GROUP)
