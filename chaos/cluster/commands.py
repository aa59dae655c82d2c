"""Commands to the Kubernetes API: requests, taints (read, changed, written), and pods selected at send time.

Pods are evicted, deleted or patched by the loop of kubectl drain, with every refusal recorded. kubectl
pkg/drain/drain.go (facts 8.3): the node is cordoned before, then every pod is evicted; 404 and another uid count as
done; 429 and a terminating namespace are retried after 5 s; then each pod is polled once a second until it is gone.
kubectl evicts all pods concurrently, this module one after the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chaos.cluster.errors import KubeUnreachable, decode_body, retry_after, status_message
from chaos.cluster.limited_api import LimitedApi
from chaos.core.api_fact import field, node_path
from chaos.core.api_path import resource_path
from chaos.core.command import (
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiCommand,
    Delivery,
    KubeCommand,
    Outcome,
    PodsCommand,
    PodVerb,
    TaintsCommand,
)
from chaos.core.drain_filter import RawPod, pod_name, select_pods
from chaos.core.duration import timestamp
from chaos.core.errors import NodefallError
from chaos.core.permission import Permission
from chaos.core.ports import Clock, RequestApi, Response

RETRY_PERIOD = 5.0  # seconds after a refusal; longer if the server requests that
POLL_PERIOD = 1.0
EXIT_OK, EXIT_REFUSED, EXIT_FAILED = 0, 1, 2  # exits
_GOOD, _GONE = range(200, 300), (404, 409)  # 409: the uid is a precondition, so another pod has the name
_OK, _NOT_FOUND, _TOO_MANY_REQUESTS = 200, 404, 429
_CONFLICT = 409
_DENIED = (401, 403)  # to us: nothing was refused for the pod's sake
_MAX_ATTEMPTS = 5  # of a change that conflicts with changes of others


@dataclass
class _PodTask:
    """One pod. ``status`` of the last response, 0 for none; ``due``: when it is polled next.

    ``first_sent`` and ``first_answered``: when the first request about it was sent, and first answered.
    """

    pod: RawPod
    due: float = 0.0
    status: int = 0
    attempts: int = 0
    is_accepted: bool = False
    is_gone: bool = False
    error: str = ""
    refusals: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    sent: float = 0.0
    first_sent: float = 0.0
    first_answered: float | None = None

    @property
    def path(self) -> str:
        metadata = self.pod["metadata"]
        return resource_path("v1", "pods", metadata["namespace"], metadata["name"])

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "pod": pod_name(self.pod),
            "uid": self.uid,
            "status": self.status,
            "attempts": self.attempts,
        }
        if self.first_answered is not None:
            result |= {"sent": self.first_sent, "answered": self.first_answered}
        return {**result, "gone": self.is_gone, "refusals": self.refusals}


class PodsTask:
    """One execution of a :class:`PodsCommand`. Raises NodefallError if nothing was done."""

    def __init__(self, kube: RequestApi, clock: Clock, command: PodsCommand) -> None:
        self._kube, self._clock, self._command = kube, clock, command
        self._deadline = clock.now() + command.wait

    def run(self) -> Outcome:
        pods, left = self._list_pods(), []
        if self._command.rules:
            found = select_pods(pods, self._command.rules, self._daemonset_exists)
            if found.refusals:
                return Outcome(Delivery.ANSWERED, EXIT_FAILED, stderr=f"nothing was evicted: {found.refusal_message}")
            pods, left = found.to_evict, [pod_name(pod) for pod in found.to_skip]
        elif not pods:
            return Outcome(Delivery.ANSWERED, EXIT_FAILED, stderr=f"there are no {self._command.pods}")
        ones = [_PodTask(pod) for pod in pods]
        self._run_tasks(ones)
        return self._outcome(ones, left)

    def _list_pods(self) -> list[RawPod]:
        choice = self._command.pods
        fields = (("spec.nodeName", choice.node), ("metadata.name", choice.name))
        selector = ",".join(f"{name}={value}" for name, value in fields if value)
        query = {"fieldSelector": selector, "labelSelector": choice.selector}
        path = resource_path("v1", "pods", choice.namespace)
        response = self._kube.request("GET", path, query={name: value for name, value in query.items() if value})
        if response.status != _OK:
            raise NodefallError(f"{path}: the API server answered {response.status}: {status_message(response)}")
        return list(decode_body(response)["items"])

    def _daemonset_exists(self, namespace: str, name: str) -> bool:
        path = resource_path("apps/v1", "daemonsets", namespace, name)
        return self._kube.request("GET", path).status != _NOT_FOUND

    def _run_tasks(self, ones: list[_PodTask]) -> None:
        """Run until all tasks are finished or the deadline is over."""
        while True:
            for one in ones:
                if not _is_finished(one) and one.due <= self._clock.now():
                    self._check_deleted(one) if one.is_accepted else self._attempt(one)
            pending = [one.due for one in ones if not _is_finished(one)]
            if not pending or not self._command.wait:
                return
            now = self._clock.now()
            until = min(self._deadline, *pending)
            if now >= self._deadline or not self._clock.sleep(max(until - now, 0.0)):
                return

    def _attempt(self, one: _PodTask) -> None:
        one.attempts += 1
        one.sent = self._clock.now()
        one.first_sent = one.first_sent or one.sent
        try:
            response = self._send(one)
        except KubeUnreachable as error:  # a retry is safe: the uid is a precondition
            self._record_refusal(one, 0, error.message, RETRY_PERIOD)
            return
        if one.first_answered is None:  # whether one before it without an answer took effect is not known
            one.first_answered = self._clock.now()
        one.status = response.status
        if response.status in _GOOD:
            one.is_accepted, one.due = True, self._clock.now() + (POLL_PERIOD if self._command.wait else 0.0)
        elif response.status in _GONE:
            one.is_accepted = one.is_gone = True
        elif (
            response.status == _TOO_MANY_REQUESTS
            or retry_after(response) is not None
            or _is_namespace_terminating(response)
        ):
            self._record_refusal(
                one, response.status, status_message(response), max(RETRY_PERIOD, retry_after(response) or 0.0)
            )
        elif response.status in _DENIED or self._command.wait:
            one.error = status_message(response) or f"the API server answered {response.status}"
        else:
            self._record_refusal(one, response.status, status_message(response), RETRY_PERIOD)

    def _record_refusal(self, one: _PodTask, status: int, message: str, again: float) -> None:
        now = self._clock.now()
        one.status, one.due = status, now + again
        one.refusals.append({"sent": one.sent, "t": now, "status": status, "message": message})

    def _send(self, one: _PodTask) -> Response:
        metadata, grace = one.pod["metadata"], self._command.grace
        precondition = {"uid": one.uid}
        options: dict[str, Any] = {
            "preconditions": precondition,
            **({} if grace is None else {"gracePeriodSeconds": grace}),
        }
        if self._command.verb is PodVerb.EVICT:
            named = {"name": metadata["name"], "namespace": metadata["namespace"]}
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": named, "deleteOptions": options}
            return self._kube.request("POST", f"{one.path}/eviction", body=body)
        if self._command.verb is PodVerb.DELETE:
            body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
            return self._kube.request("DELETE", one.path, body=body)
        if self._command.verb is PodVerb.MARK_DISRUPTION:
            body = {"metadata": precondition, "status": {"conditions": [self._disruption_condition()]}}
            return self._kube.request("PATCH", f"{one.path}/status", body=body, content_type=STRATEGIC_PATCH)
        patch = {"metadata": {**precondition, "finalizers": None}}
        return self._kube.request("PATCH", one.path, body=patch, content_type=MERGE_PATCH)

    def _disruption_condition(self) -> dict[str, str]:
        """The condition that the eviction subresource sets: pkg/registry/core/pod/storage/eviction.go."""
        now = timestamp(self._clock.now())
        reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        return {**condition, "lastTransitionTime": now}

    def _check_deleted(self, one: _PodTask) -> None:
        """Update whether the pod is gone; without a response it is polled again."""
        one.due = self._clock.now() + POLL_PERIOD
        try:
            response = self._kube.request("GET", one.path)
        except KubeUnreachable:
            return
        one.is_gone = response.status == _NOT_FOUND or (
            response.status == _OK and decode_body(response)["metadata"]["uid"] != one.uid
        )

    def _outcome(self, ones: list[_PodTask], left: list[str]) -> Outcome:
        evidence = {"pods": [one.to_dict() for one in ones], **({"left": left} if left else {})}
        failed = [f"{pod_name(one.pod)}: {one.error}" for one in ones if one.error]
        if failed:
            return Outcome(Delivery.ANSWERED, EXIT_FAILED, stderr="; ".join(failed), evidence=evidence)
        if lost := [one for one in ones if not one.status]:
            return Outcome(Delivery.LOST, error=f"no answer about {pod_name(lost[0].pod)}", evidence=evidence)
        undone = [one for one in ones if not one.is_accepted or (self._command.wait and not one.is_gone)]
        why = [f"{pod_name(one.pod)} {'is not gone' if one.is_accepted else 'was refused'}" for one in undone]
        return Outcome(Delivery.ANSWERED, EXIT_REFUSED if undone else EXIT_OK, stderr="; ".join(why), evidence=evidence)


def _is_finished(one: _PodTask) -> bool:
    return one.is_gone or bool(one.error)


def _is_namespace_terminating(response: Response) -> bool:
    """Whether the namespace is being deleted: it rejects evictions, and its pods end by themselves."""
    return response.status == 403 and b'"NamespaceTerminating"' in response.body


class KubeTransport:
    """Sends API commands. Thread-safe. Waits in the clock's time only."""

    def __init__(self, kube: RequestApi, clock: Clock) -> None:
        self._kube: RequestApi = kube
        self._clock = clock

    @contextmanager
    def limited_to(self, permissions: Sequence[Permission]) -> Iterator[None]:
        """Inside the block, raise Refused for a command whose request ``permissions`` do not cover."""
        unlimited, self._kube = self._kube, LimitedApi(self._kube, permissions)
        try:
            yield
        finally:
            self._kube = unlimited

    def send(self, command: ApiCommand) -> Outcome:
        """Send ``command``. Raises KubeUnreachable only if nothing was sent."""
        if isinstance(command, PodsCommand):
            return PodsTask(self._kube, self._clock, command).run()
        try:
            return self._request(command) if isinstance(command, KubeCommand) else self._update_taints(command)
        except KubeUnreachable as error:
            if not error.sent:
                raise
            return Outcome(Delivery.LOST, error=error.message)

    def _request(self, command: KubeCommand) -> Outcome:
        response = self._kube.request(
            command.method, command.path, body=command.body, content_type=command.content_type
        )
        body = decode_body(response) if command.evidence_pointers else None
        return _outcome(response, {pointer: field(body, pointer) for pointer in command.evidence_pointers})

    def _update_taints(self, command: TaintsCommand) -> Outcome:
        """Write the whole list against the version that was read, as kubectl taint does."""
        for _ in range(_MAX_ATTEMPTS):
            read = self._kube.request("GET", node_path(command.node))
            if read.status != 200:
                return _outcome(read)
            node = decode_body(read)
            taints = merge_taints(field(node, "/spec/taints") or [], command)
            metadata = {"resourceVersion": field(node, "/metadata/resourceVersion")}
            if command.annotations:
                metadata["annotations"] = command.annotations
            patch = {"metadata": metadata, "spec": {"taints": taints or None}}
            written = self._kube.request("PATCH", node_path(command.node), body=patch, content_type=MERGE_PATCH)
            if written.status != _CONFLICT:
                break
        return _outcome(written, {"taints": taints})


def merge_taints(taints: list[dict[str, Any]], command: TaintsCommand) -> list[dict[str, Any]]:
    """The taints without those to remove and with those to add; one for each key and effect."""
    removed = {*command.remove, *(f"{taint['key']}:{taint['effect']}" for taint in command.add)}
    remaining = [
        t for t in taints if t.get("key") not in removed and f"{t.get('key')}:{t.get('effect')}" not in removed
    ]
    return [*remaining, *command.add]


def _outcome(response: Response, evidence: dict[str, Any] | None = None) -> Outcome:
    good = response.status < 300
    return Outcome(
        Delivery.ANSWERED,
        response.status,
        stdout=response.body.decode("utf-8", "replace") if good else "",
        stderr="" if good else f"the API server answered {response.status}: {status_message(response)}",
        evidence=(evidence or {}) if good else {},
    )
