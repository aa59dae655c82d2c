"""The helper pods of one process: made where a node is first contacted, removed together at its end.

It never uses a pod of another process, because someone else may control that pod by now.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from chaos.cluster.errors import check_success, decode_body, status_message
from chaos.core.api_fact import condition_status, field, node_path
from chaos.core.api_path import object_path
from chaos.core.duration import parse_duration
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.labels import HELPER_LABEL, HELPER_SESSION, RUN_LABEL, name_from_run
from chaos.core.ports import Clock, KubeApi
from chaos.machines.pod.manifest import (
    GENERATE_NAME,
    PodOptions,
    helper_labels,
    helper_pod,
    is_finished,
    is_hopeless,
    is_over,
    is_ready,
    pods_path,
    why_not_ready,
)

POLL = 0.5  # seconds of cluster time between two looks at a pod
REMOVAL_SECONDS = 40.0  # for the kubelets to end the pods, the longest way a minute's grace period is not
_OK, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 200, 403, 404, 409
_KUBELET_PORT = 10250
_GENERATED = re.compile(rf'pods "{GENERATE_NAME}[a-z0-9]+"')
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Helper:
    """A pod that has been Ready."""

    namespace: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        return object_path(pods_path(self.namespace), self.name)

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.name}"


class HelperPods:
    """The helper pods of this process. Thread safe. ``session`` labels them, and also ``run`` once it is known.

    ``namespace``: the default if the options name none.
    """

    def __init__(self, kube: KubeApi, clock: Clock, namespace: str) -> None:
        self._kube, self._clock, self._namespace = kube, clock, namespace
        self.session, self.run = secrets.token_hex(8), ""
        self._is_undo = False  # of the run: then the pods of all its processes are removed
        self._namespaces: set[str] = set()
        self._creating, self._is_closed = 0, False
        self._lock = Lock()

    @property
    def namespaces(self) -> list[str]:
        """The namespaces in which this process has created pods, sorted."""
        with self._lock:
            return sorted(self._namespaces)

    def take_over(self, run: str, namespaces: Iterable[str]) -> None:
        """Also remove pods left by other, dead processes of ``run``. Only for an undo that holds the run's lock."""
        with self._lock:
            self.run, self._is_undo = run, True
            self._namespaces.update(namespaces)

    def create(self, node: str, options: PodOptions) -> Helper:
        """Create a pod on ``node`` and wait until it is Ready. Raises Unreachable, or Refused for a wrong setup."""
        self._check_node(node, options)
        namespace = options.namespace or self._namespace
        body = helper_pod(node, namespace, options, helper_labels(self.session, self.run))
        with self._creation(node, namespace):
            response = self._kube.request("POST", pods_path(namespace), body=body)
        if response.status in (_FORBIDDEN, _NOT_FOUND, 422):
            raise _creation_refused(node, namespace, response.status, status_message(response))
        check_success(response, f"{node}: its helper pod cannot be created in namespace {namespace}")
        metadata = decode_body(response)["metadata"]
        helper = Helper(namespace, metadata["name"], metadata["uid"])
        try:
            self._await_ready(node, helper, options)
        except NodefallError:
            self.delete(helper)
            raise
        return helper

    def is_usable(self, node: str, helper: Helper) -> bool:
        """Whether the pod exists and has not ended. Raises Unreachable if it exists and is not Ready."""
        response = self._kube.request("GET", helper.path)
        if response.status == _NOT_FOUND:
            return False
        check_success(response, f"{helper} cannot be read")
        pod = decode_body(response)
        if field(pod, "/metadata/uid") != helper.uid or is_over(pod):
            return False
        if not is_ready(pod):
            raise Unreachable(f"{node}: {helper} is not Ready: {why_not_ready(pod)}")
        return True

    def delete(self, helper: Helper) -> None:
        """Delete a pod, if it is still there. Raises NodefallError."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": helper.uid}}
        response = self._kube.request("DELETE", helper.path, body=body)
        if response.status not in (_NOT_FOUND, _CONFLICT):  # a conflict: another pod has the name
            check_success(response, f"{helper} cannot be deleted")

    def now(self) -> float:
        """Cluster time."""
        return self._clock.now()

    def pause(self) -> bool:
        """Sleep briefly in cluster time; returns False if the run stops."""
        return self._clock.sleep(POLL)

    def kubelet_peer(self, node: str) -> dict[str, str | int]:
        """The peer that the host sees during exec, as a network and a port: any API server, and the kubelet's port.

        Which of several API servers, or which konnectivity agent connects, changes from one command to the next.
        """
        document = self._read_node(node)
        addresses = [a["address"] for a in field(document, "/status/addresses") or () if a["type"] == "InternalIP"]
        port = field(document, "/status/daemonEndpoints/kubeletEndpoint/Port") or _KUBELET_PORT
        return {"address": "::/0" if addresses and ":" in addresses[0] else "0.0.0.0/0", "port": int(port)}

    def remove(self) -> list[str]:
        """Delete every pod of this process or run, and wait until they have ended. Returns what is left, as text.

        No pod is created after this call. It waits for a pod that another thread is just creating.
        """
        with self._lock:
            self._is_closed = True
        deadline = self._clock.now() + REMOVAL_SECONDS
        while self._namespaces:
            is_creating = self._creating > 0
            left = self._delete_own()
            if not left and not is_creating:
                self._namespaces.clear()
            elif self._clock.now() >= deadline or not self.pause():
                return left or ["a helper pod that was being created may be left"]
        return []

    def _delete_own(self) -> list[str]:
        """Delete the remaining pods. Returns what is left, as text. A failure does not stop the deletion of other
        pods.
        """
        left = []
        for namespace in self.namespaces:
            try:
                pods = self._own_pods(namespace)
            except NodefallError as error:
                left.append(f"helper pods with the label {self._own_label()} may be left: {error.message}")
                continue
            left += [self._delete_one(pod) for pod in pods]
        return left

    def _delete_one(self, pod: dict[str, Any]) -> str:
        why = ""
        if not field(pod, "/metadata/deletionTimestamp"):
            try:
                self.delete(_helper_of(pod))
            except NodefallError as error:
                why = f": {error.message}"
        return f"{_describe_left(pod)}{why}"

    @contextmanager
    def _creation(self, node: str, namespace: str) -> Iterator[None]:
        """Count a pod creation inside the block, so that :meth:`remove` waits for it. Raises Unreachable after it."""
        with self._lock:
            if self._is_closed:
                raise Unreachable(f"{node}: no more helper pods are created, because they are being removed")
            self._namespaces.add(namespace)
            self._creating += 1
        try:
            yield
        finally:
            with self._lock:
                self._creating -= 1

    def _own_label(self) -> str:
        return f"{RUN_LABEL}={name_from_run(self.run)}" if self._is_undo else f"{HELPER_SESSION}={self.session}"

    def _own_pods(self, namespace: str) -> list[dict[str, Any]]:
        query = {"labelSelector": f"{HELPER_LABEL}=pod,{self._own_label()}"}
        response = self._kube.request("GET", pods_path(namespace), query)
        check_success(response, f"the helper pods in {namespace} cannot be listed")
        return list(decode_body(response).get("items") or [])

    def _read_node(self, node: str) -> dict[str, Any]:
        response = self._kube.request("GET", node_path(node))
        if response.status == _NOT_FOUND:
            raise Unreachable(f"{node} has no Node object, which transport pod needs", hint="wait until it registers")
        check_success(response, f"node {node} cannot be read")
        return dict(decode_body(response))

    def _check_node(self, node: str, options: PodOptions) -> None:
        """Raises Unreachable if no pod would start on the node, Refused if a new pod would evict another."""
        document = self._read_node(node)
        if (status := condition_status(document, "Ready")) != "True":
            why = f"{node} is not Ready (its condition is {status or 'missing'}): its kubelet starts no pod"
            raise Unreachable(why, hint="give its host a transport that does not need the kubelet, such as ssh")
        if options.is_critical:
            self._check_room(node, field(document, "/status/allocatable/pods"))

    def _check_room(self, node: str, allocatable: str | None) -> None:
        """Raises Refused if the node has no room for another pod.

        To admit a critical pod, the kubelet ends others: pkg/kubelet/preemption (facts 9).
        """
        response = self._kube.request("GET", "/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        check_success(response, f"the pods on {node} cannot be listed")
        count = sum(not is_finished(pod) for pod in decode_body(response).get("items") or [])
        if allocatable is not None and count >= int(allocatable):
            why = "to start a helper pod its kubelet would end another pod"
            hint = "move a pod away from the node, or give its host transport ssh"
            raise Refused(f"{node} has {count} pods, and room for {allocatable}: {why}", hint=hint)

    def _await_ready(self, node: str, helper: Helper, options: PodOptions) -> None:
        seconds = parse_duration(options.ready_timeout)
        deadline = self._clock.now() + seconds
        while True:
            response = self._kube.request("GET", helper.path)
            check_success(response, f"{node}: {helper} cannot be read")
            pod = decode_body(response)
            if is_ready(pod):
                return
            if is_hopeless(pod) or self._clock.now() >= deadline:
                late = "" if is_hopeless(pod) else f" after {seconds:g} s"
                hint = "check image, imagePullSecret and priorityClass of its options in the inventory"
                raise Unreachable(f"{node}: {helper} is not Ready{late}: {why_not_ready(pod)}", hint=hint)
            if not self.pause():
                raise Unreachable(f"{node}: {helper} was not ready before the run stopped")


def _creation_refused(node: str, namespace: str, status: int, message: str) -> Refused:
    message = _GENERATED.sub("the pod", message)  # so that the same refusal on other nodes reads the same
    hint = "check image, namespace and priorityClass of its options in the inventory"
    if "violates PodSecurity" in message:
        label = "pod-security.kubernetes.io/enforce=privileged"
        hint = f"kubectl label namespace {namespace} --overwrite {label}, or name another namespace in its options"
    elif status == _FORBIDDEN and "cannot create" in message:
        hint = "grant the permissions that nodefall rbac --inventory FILE prints"
    elif status == _NOT_FOUND:
        hint = f"kubectl create namespace {namespace}, or name another one in its options"
    return Refused(f"{node}: its helper pod is not admitted to namespace {namespace}: {message}", hint=hint)


def _helper_of(pod: dict[str, Any]) -> Helper:
    metadata = pod["metadata"]
    return Helper(metadata["namespace"], metadata["name"], metadata["uid"])


def _describe_left(pod: dict[str, Any]) -> str:
    deleted = field(pod, "/metadata/deletionTimestamp")
    node = field(pod, "/spec/nodeName")
    return f"{_helper_of(pod)} on {node} has not ended ({f'deleted, by {deleted}' if deleted else 'not deleted'})"
