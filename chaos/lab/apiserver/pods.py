"""Validation of pods, and what they take over from elsewhere.

Validation of pod updates. pkg/apis/core/validation ValidatePodUpdate and ValidateTolerationUpdate.
The seconds of preStop hooks of the kind sleep. pkg/apis/core/validation validateSleepAction; KEP-4818.
Pod Security admission in mode enforce: the checks of the baseline level that a pod for a host's own work breaks.
k8s.io/pod-security-admission policy: check_hostNamespaces.go, check_privileged.go; messages of admission.go. The other
checks, and those that only the restricted level has, are not simulated.
Labels that pods take over from their nodes. plugin/pkg/admission/podtopologylabels, on by default since v1.35.
Which generation of a pod a writer of its status has seen.
When a toleration matches a taint. staging/src/k8s.io/api/core/v1/toleration.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.objects import Object, labels_of
from chaos.lab.rules import TolerationRules
from chaos.lab.spec import LabSpec

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


LABEL, VERSION = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version"
_LEVELS = ("baseline", "restricted")
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")


def violation(namespace: dict[str, Any], spec: dict[str, Any]) -> str:
    """Why the labels of ``namespace`` forbid a pod with this spec; "" if they do not."""
    labels = namespace["metadata"].get("labels") or {}
    if (level := labels.get(LABEL)) not in _LEVELS:
        return ""
    broken = ", ".join(_broken_rules(spec))
    return f'violates PodSecurity "{level}:{labels.get(VERSION, "latest")}": {broken}' if broken else ""


def _broken_rules(spec: dict[str, Any]) -> Iterator[str]:
    if used := [f"{name}=true" for name in _HOST_NAMESPACES if spec.get(name)]:
        yield f"host namespaces ({', '.join(used)})"
    containers = [c["name"] for c in spec["containers"] if (c.get("securityContext") or {}).get("privileged")]
    if containers:
        names = ", ".join(f'"{name}"' for name in containers)
        plural = "s" if len(containers) > 1 else ""
        yield f"privileged (container{plural} {names} must not set securityContext.privileged=true)"


_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_Items = tuple[tuple[str, str], ...]


def add_topology_labels(pod: Object, node: Object | None, spec: LabSpec, *, is_binding: bool) -> None:
    """Add region and zone of its node to a pod that is bound, or created with a node, whose own labels then stay."""
    labels = labels_of(node) if node else {}
    found = tuple((key, labels[key]) for key in _LABELS if key in labels)
    if found and spec.has_feature("topology-labels"):
        own = tuple(labels_of(pod).items())
        merged = _merge(own, found) if is_binding else _merge(found, own)
        pod["metadata"] = {**pod["metadata"], "labels": merged}


@lru_cache(maxsize=4096)
def _merge(first: _Items, second: _Items) -> dict[str, str]:
    """Labels shared by all pods with equal ones; never changed in place."""
    return {**dict(first), **dict(second)}


def observed_generation(pod: Object, spec: LabSpec) -> dict[str, int]:
    """The field ``observedGeneration`` of the pod's status or of one of its conditions; empty in older versions."""
    if not spec.has_feature("pod-observed-generation"):
        return {}
    return {"observedGeneration": pod["metadata"].get("generation", 1)}


DEFAULT = TolerationRules()


def tolerates(toleration: Object, taint: Object, rules: TolerationRules = DEFAULT) -> bool:
    """Whether a toleration with Equal or Exists tolerates the taint. ToleratesTaint."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if rules.compares_effects and (taint["effect"] != effect if effect else taint["effect"] not in rules.empty_effect):
        return False
    if rules.compares_keys and (taint["key"] != key if key else not rules.empty_key_matches):
        return False
    same_value, operator = toleration.get("value", "") == taint.get("value", ""), toleration.get("operator")
    match operator or rules.default_operator:
        case "Exists":
            return rules.exists_matches and (same_value or not rules.exists_compares_values)
        case "Equal":
            return bool(rules.equal_matches and key and (same_value or not rules.compares_values))
        case _:
            return False


def untolerated(
    pod: Object, taints: Iterable[Object], effects: tuple[str, ...], rules: TolerationRules = DEFAULT
) -> list[Object]:
    """Taints with these effects that the pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or []
    relevant = [taint for taint in taints if taint["effect"] in effects]
    found = [taint for taint in relevant if not any(tolerates(item, taint, rules) for item in tolerations)]
    return [] if rules.one_suffices and len(found) < len(relevant) else found
