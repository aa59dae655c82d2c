"""Validation of pod updates. pkg/apis/core/validation ValidatePodUpdate and ValidateTolerationUpdate."""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.admission.defaults import InvalidError

_MUTABLE = {"activeDeadlineSeconds", "schedulingGates", "tolerations"}
_FORBIDDEN = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Check that only mutable fields of the specs differ. Raises InvalidError."""
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    if changed == {"containers"} and _without_images(new) == _without_images(old):
        raise InvalidError("the lab does not simulate a new image in a running pod")
    if changed - _MUTABLE:
        raise InvalidError(_FORBIDDEN)
    unchanged = [_without_seconds(item) for item in new.get("tolerations") or []]
    if any(_without_seconds(item) not in unchanged for item in old.get("tolerations") or []):
        reason = "existing toleration can not be modified except its tolerationSeconds"
        raise InvalidError(f"spec.tolerations: Forbidden: {reason}")


def _without_images(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**container, "image": ""} for container in spec["containers"]]


def _without_seconds(toleration: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}
