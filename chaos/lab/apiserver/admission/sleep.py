"""The seconds of preStop hooks of the kind sleep. pkg/apis/core/validation validateSleepAction; KEP-4818."""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.objects.accessors import Object
from chaos.lab.spec import LabSpec

_TEMPLATED = frozenset({"deployments", "replicasets", "statefulsets", "daemonsets", "jobs"})
_HINT = "Please enable PodLifecycleSleepActionAllowZero feature gate if you need a sleep of zero duration."


def check_sleep(plural: str, obj: Object, spec: LabSpec) -> None:
    """Check an admitted pod, or the pod template of an object. Raises InvalidError."""
    if plural == "pods":
        _check(obj["spec"], spec)
    elif plural in _TEMPLATED:
        _check(obj["spec"]["template"]["spec"], spec)


def _check(body: dict[str, Any], spec: LabSpec) -> None:
    grace, least = body["terminationGracePeriodSeconds"], 0 if spec.has_feature("sleep-zero") else 1
    bound = f"less than terminationGracePeriodSeconds ({grace})"
    message = f"must be greater than 0 and {bound}. {_HINT}" if least else f"must be non-negative and {bound}"
    for index, container in enumerate(body["containers"]):
        sleep = ((container.get("lifecycle") or {}).get("preStop") or {}).get("sleep")
        if sleep is not None and not least <= sleep.get("seconds", 0) <= grace:
            where = f"spec.containers[{index}].lifecycle.preStop.sleep"
            raise InvalidError(f"{where}: Invalid value: {sleep.get('seconds', 0)}: {message}")
