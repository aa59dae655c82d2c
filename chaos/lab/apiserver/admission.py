"""Admission of new objects: validation, defaulting and admission plugins of the API server, as far as simulated.

Fields that the lab cannot simulate faithfully (probes, init containers) are rejected.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from chaos.lab.apiserver.admission_affinity import affinity_problems, merge_label_keys
from chaos.lab.apiserver.admission_metadata import admit_node, check_new
from chaos.lab.apiserver.store import Store, clone
from chaos.lab.objects import MEMORY_PRESSURE, NOT_READY, UNREACHABLE, Object, generated_name, parse_quantity
from chaos.lab.rules.control_plane import ApiServerRules
from chaos.lab.sim import SimClock

PREFIX = "lab.nodefall.dev/"
_BEHAVIOUR = (
    *("starts-after", "ready-after", "runs-for", "stops-after", "exit-code", "ignores-sigterm"),
    "exceeds-limit-after",
)
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
PERCENT = re.compile(r"(100|[0-9]{1,2})%", re.ASCII)
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_Priority = tuple[int, str] | None
_MAX_ADMITTED = 512  # specs in the cache
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


class InvalidError(ValueError):
    """Error 422 of the API server, or a field that the lab does not simulate."""


def admit(plural: str, obj: Object, pods: PodAdmission, sim: SimClock) -> None:
    """Check and default a new object in place. Raises InvalidError."""
    metadata = obj["metadata"]
    if not metadata.get("name"):
        if not metadata.get("generateName"):
            raise InvalidError("metadata.name: Required value: name or generateName is required")
        metadata["name"] = generated_name(metadata["generateName"], sim.rng)
    pattern = pods.rules.node_name_pattern if plural == "nodes" else ""
    is_named = pattern and re.fullmatch(pattern, metadata["name"])
    if not is_named and (problems := check_new(plural, metadata)):
        raise InvalidError(*problems)
    if plural == "pods":
        pods.admit(obj)
    elif plural == "nodes":
        admit_node(obj, sim, pods.rules)
    elif plural == "namespaces":
        obj.setdefault("spec", {})["finalizers"] = ["kubernetes"]
        obj["status"] = {"phase": "Active"}
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    else:
        _admit_other(plural, obj)


def _admit_other(plural: str, obj: Object) -> None:
    if plural == "poddisruptionbudgets":
        check_budget(obj)
        obj["status"] = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)
    elif plural == "priorityclasses":
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def check_pod_spec(spec: Object, annotations: dict[str, str]) -> None:
    """Check the spec of a pod or pod template. Raises InvalidError."""
    containers = spec.get("containers") or []
    if not containers:
        raise InvalidError("spec.containers: Required value")
    for container in containers:
        if not container.get("name"):
            raise InvalidError("spec.containers[0].name: Required value")
        _check_container(container)
    if spec.get("initContainers"):
        raise InvalidError("the lab does not simulate initContainers")
    for volume in spec.get("volumes") or []:
        if "persistentVolumeClaim" in volume and not (volume["persistentVolumeClaim"] or {}).get("claimName"):
            raise InvalidError("spec.volumes[0].persistentVolumeClaim.claimName: Required value")
    _check_scheduling(spec)
    if (policy := spec.get("restartPolicy", "Always")) not in _RESTART_POLICIES:
        raise InvalidError(f"spec.restartPolicy: Unsupported value: {policy!r}")
    for key, value in annotations.items():
        if key.startswith(PREFIX):
            _check_behaviour(key, value)


def _check_container(container: Object) -> None:
    for kind, amounts in (container.get("resources") or {}).items():
        for resource, amount in (amounts if isinstance(amounts, dict) else {}).items():
            try:
                parse_quantity(amount)
            except ValueError as error:
                raise InvalidError(f"resources.{kind}.{resource}: {error}") from error
    for probe in _PROBES:
        if container.get(probe):
            raise InvalidError(f"the lab does not simulate {probe}")
    lifecycle = container.get("lifecycle") or {}
    if lifecycle.get("postStart") or (lifecycle.get("preStop") and "sleep" not in lifecycle["preStop"]):
        raise InvalidError("the lab simulates no lifecycle hook but preStop.sleep")


def _check_scheduling(spec: Object) -> None:
    if problem := next(affinity_problems(spec), None):
        raise InvalidError(problem)
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        raise InvalidError("the lab has no scheduler other than default-scheduler")
    for item in spec.get("topologySpreadConstraints") or []:
        if item.get("nodeTaintsPolicy", "Ignore") != "Ignore" or item.get("minDomains") or item.get("matchLabelKeys"):
            raise InvalidError("the lab does not simulate nodeTaintsPolicy, minDomains and matchLabelKeys")


def _check_behaviour(key: str, value: str) -> None:
    name = key.removeprefix(PREFIX)
    if name not in _BEHAVIOUR:
        raise InvalidError(f"unknown annotation {key}; there are {', '.join(PREFIX + item for item in _BEHAVIOUR)}")
    if name == "ignores-sigterm":
        if value not in ("true", "false"):
            raise InvalidError(f"{key}: {value!r} is neither true nor false")
        return
    try:
        number = int(value) if name == "exit-code" else float(value)
    except ValueError as error:
        raise InvalidError(f"{key}: {value!r} is not a number") from error
    if not 0 <= number < math.inf or (name == "exit-code" and number > 255):
        raise InvalidError(f"{key}: {value} is out of range")


class PodAdmission:
    """Admission of pods. Those with equal specs share what is within their specs, and are checked once."""

    def __init__(self, store: Store, rules: ApiServerRules) -> None:
        self._store, self.rules = store, rules
        self._admitted: dict[tuple[object, ...], tuple[Object, str]] = {}  # spec and QoS class by what they follow from

    def admit(self, pod: Object) -> None:
        """Check a new pod, and replace its spec by one with defaults. Raises InvalidError."""
        metadata = pod["metadata"]
        annotations = metadata.get("annotations") or {}
        body = merge_label_keys(pod.get("spec") or {}, metadata.get("labels") or {})
        priority = _priority(body, self._store)
        key = (msgspec.json.encode(body), msgspec.json.encode(annotations), priority)
        if (admitted := self._admitted.get(key)) is None:
            if len(self._admitted) >= _MAX_ADMITTED:
                self._admitted.clear()
            admitted = self._admitted[key] = self._admit(clone(body), annotations, priority)
        pod["spec"], pod["status"] = admitted[0], {"phase": "Pending", "qosClass": admitted[1]}

    def _admit(self, body: Object, annotations: dict[str, str], priority: _Priority) -> tuple[Object, str]:
        check_pod_spec(body, annotations)
        default_pod_spec(body, self.rules.default_termination_grace_period_seconds)
        if priority is None:
            raise InvalidError(f"no PriorityClass with name {body['priorityClassName']} was found")
        body["priority"], body["preemptionPolicy"] = priority
        tolerations = body.setdefault("tolerations", [])
        for key, seconds in (
            (NOT_READY, self.rules.default_not_ready_toleration_seconds),
            (UNREACHABLE, self.rules.default_unreachable_toleration_seconds),
        ):
            if self.rules.replaces_own_tolerations:
                tolerations[:] = [item for item in tolerations if not _covers(item, key)]
            if self.rules.adds_default_tolerations and not any(_covers(item, key) for item in tolerations):
                item = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
                tolerations.append(item)
        quality = qos_class(body["containers"])
        if quality in self.rules.memory_pressure_qos_classes:
            tolerations.append({"key": MEMORY_PRESSURE, "operator": "Exists", "effect": "NoSchedule"})
        return body, quality


def _covers(toleration: Object, key: str) -> bool:
    """Whether a toleration covers NoExecute taints with this key. Admission DefaultTolerationSeconds."""
    return toleration.get("key", key) in (key, "") and toleration.get("effect", "NoExecute") in ("NoExecute", "")


def default_pod_spec(body: dict[str, Any], grace_period_seconds: int = 30) -> None:
    """Set the defaults of the API server in a pod spec."""
    body.setdefault("restartPolicy", "Always")
    body.setdefault("terminationGracePeriodSeconds", grace_period_seconds)
    body.setdefault("dnsPolicy", "ClusterFirst")
    body.setdefault("schedulerName", "default-scheduler")
    body.setdefault("securityContext", {})
    for container in body["containers"]:
        container.setdefault("image", "registry.k8s.io/pause:3.10")
        container.setdefault("resources", {})


def qos_class(containers: list[Object]) -> str:
    """QoS class from requests and limits of cpu and memory: Guaranteed, Burstable or BestEffort."""
    resources = [item.get("resources") or {} for item in containers]
    amounts = [(item.get("requests") or {}, item.get("limits") or {}) for item in resources]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    for requests, limits in amounts:
        if not {"cpu", "memory"} <= limits.keys() or {**limits, **requests} != limits:
            return "Burstable"
    return "Guaranteed"


def _priority(body: Object, store: Store) -> _Priority:
    """Priority and preemption policy of a pod; None if its PriorityClass does not exist."""
    name = body.get("priorityClassName")
    found = store.get("priorityclasses", "", name) if name else _default_class(store)
    if name and found is None:
        return None
    return (found["value"] if found else 0), (found or {}).get("preemptionPolicy", "PreemptLowerPriority")


def _default_class(store: Store) -> Object | None:
    return next((item for item in store.list("priorityclasses") if item.get("globalDefault")), None)


def check_budget(budget: Object) -> None:
    """Check a PodDisruptionBudget. Raises InvalidError."""
    spec = budget.setdefault("spec", {})
    amounts = [spec[key] for key in ("minAvailable", "maxUnavailable") if spec.get(key) is not None]
    if len(amounts) > 1:
        raise InvalidError("spec: minAvailable and maxUnavailable cannot be both set")
    for amount in amounts:
        percent = isinstance(amount, str) and PERCENT.fullmatch(amount)
        if not percent and not (isinstance(amount, int) and not isinstance(amount, bool) and amount >= 0):
            raise InvalidError(f"spec: {amount!r} is neither a whole number nor a percentage up to 100%")
    policy = spec.get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
    if policy not in ("IfHealthyBudget", "AlwaysAllow"):
        raise InvalidError(f"spec.unhealthyPodEvictionPolicy: Unsupported value: {policy!r}")


def check_claim(spec: Object) -> None:
    """Check the spec of a PersistentVolumeClaim. Raises InvalidError."""
    check_modes(spec)
    if spec.get("selector") or spec.get("dataSource") or spec.get("volumeMode", "Filesystem") != "Filesystem":
        raise InvalidError("the lab simulates no selector, dataSource and volumeMode of claims")
    check_storage((spec.get("resources") or {}).get("requests") or {}, "spec.resources.requests.storage")


def check_modes(spec: Object) -> None:
    """Check the access modes of a claim or a volume. Raises InvalidError."""
    modes = spec.get("accessModes") or []
    if not modes:
        raise InvalidError("spec.accessModes: Required value: at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            raise InvalidError(f"spec.accessModes: Unsupported value: {mode!r}: supported values: {', '.join(_MODES)}")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        reason = "may not use ReadWriteOncePod with other access modes"
        raise InvalidError(f"spec.accessModes: Forbidden: {reason}")


def check_storage(amounts: Object, where: str) -> None:
    """Check a quantity of storage. Raises InvalidError."""
    try:
        parse_quantity(amounts["storage"])
    except (KeyError, ValueError) as error:
        raise InvalidError(f"{where}: Required value") from error
