"""The helper pod of a node: privileged, on its host's PIDs and network, doing nothing by itself.

Also reads from its status whether commands can be run in it, and makes the undo that removes the helper pods of
a run, also after the death of the process that made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field

from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.api_fact import field, object_fact
from chaos.core.api_path import resource_path
from chaos.core.command import KubeCommand
from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.kube_names import Namespace
from chaos.core.labels import HELPER_LABEL, HELPER_NODE, HELPER_SESSION, MANAGED_BY_LABEL, RUN_LABEL, name_from_run

CONTAINER = "host"
GENERATE_NAME = "nodefall-host-"
IMAGE = "docker.io/library/busybox:1.37"
# Where distributions keep programs for root: the image's own PATH, and its other variables, mean nothing on the host.
_HOST_PATH = ":".join(
    (
        *("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"),
        *("/opt/bin", "/snap/bin", "/run/current-system/sw/bin"),  # Flatcar; snap packages; NixOS
    )
)
# Into every namespace of PID 1 but that of users and cgroups: as a login shell of root would be.
ENTER = (
    *("nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--"),
    *("/usr/bin/env", "-i", f"PATH={_HOST_PATH}"),
)
# What does not get better by itself: pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go.
_HOPELESS = frozenset({"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"})
Pod = Mapping[str, Any]
HELPER_PODS = "helper-pods"  # action name of the journal entry; its node is the namespace
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class PodOptions(Model):
    image: str = Field(
        IMAGE,
        min_length=1,
        description="An image with sh, sleep and nsenter. It is pulled if the node does not have it.",
    )
    namespace: Namespace | None = Field(
        None, description="The namespace of the pods. It must admit privileged pods. By default, cluster.namespace."
    )
    priority_class: str = Field(
        "system-node-critical",
        alias="priorityClass",
        description="The priority class of the pods. Pods of the default class are neither evicted under "
        "pressure nor ended first at a shutdown. Empty means none.",
    )
    image_pull_policy: Literal["IfNotPresent", "Never", "Always"] = Field("IfNotPresent", alias="imagePullPolicy")
    image_pull_secret: str | None = Field(
        None, alias="imagePullSecret", description="The Secret in the namespace with the credentials of the registry."
    )
    ready_timeout: DurationText = Field(
        "60s", alias="readyTimeout", description="How long a pod may take to become Ready."
    )
    lifetime: DurationText = Field(
        "4h", description="When the kubelet ends a pod that nodefall could not remove. It must be longer than any run."
    )

    @property
    def is_critical(self) -> bool:
        """Whether a kubelet ends other pods to make room for these."""
        return self.priority_class.startswith("system-")  # no other class may be as high


def pods_path(namespace: str) -> str:
    """API path of the pods of a namespace."""
    return resource_path("v1", "pods", namespace)


def helper_labels(session: str, run: str) -> dict[str, str]:
    """The labels of the pods of a process. ``run``: the ID of its run, or ""."""
    labels = {**MANAGED_BY_LABEL, HELPER_LABEL: "pod", HELPER_SESSION: session}
    return labels | ({RUN_LABEL: name_from_run(run)} if run else {})


def helper_pod(node: str, namespace: str, options: PodOptions, labels: dict[str, str]) -> dict[str, Any]:
    """The manifest of a new pod on ``node``, which bypasses the scheduler."""
    container = {
        "name": CONTAINER,
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy,
        "command": ["sleep", str(round(parse_duration(options.lifetime)))],
        "securityContext": {"privileged": True},
    }
    spec = {
        "nodeName": node,
        "hostPID": True,
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Always",  # back by itself after a power cut
        "activeDeadlineSeconds": round(parse_duration(options.lifetime)),
        "terminationGracePeriodSeconds": 1,  # with 0 the API server forgets the pod before it has ended
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        **({"priorityClassName": options.priority_class} if options.priority_class else {}),
        **({"imagePullSecrets": [{"name": options.image_pull_secret}]} if options.image_pull_secret else {}),
    }
    metadata = {
        "generateName": GENERATE_NAME,
        "namespace": namespace,
        "labels": labels,
        "annotations": {HELPER_NODE: node},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def is_ready(pod: Pod) -> bool:
    """Whether the pod's container is running."""
    conditions = field(pod, "/status/conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def is_finished(pod: Pod) -> bool:
    """Whether all containers of the pod have ended for good."""
    return field(pod, "/status/phase") in ("Succeeded", "Failed")


def is_over(pod: Pod) -> bool:
    """Whether the pod has ended for good, or is being deleted."""
    return is_finished(pod) or bool(field(pod, "/metadata/deletionTimestamp"))


def why_not_ready(pod: Pod) -> str:
    """The reasons in the pod's status why it is not Ready."""
    return "; ".join(_reasons(pod)) or f"its phase is {field(pod, '/status/phase') or 'unknown'}"


def is_hopeless(pod: Pod) -> bool:
    """Whether the pod will never become Ready."""
    return is_over(pod) or any(waits.get("reason") in _HOPELESS for waits in _waiting(pod))


def _reasons(pod: Pod) -> Iterator[str]:
    status = field(pod, "/status") or {}
    for each in (status, *_waiting(pod)):
        if text := ": ".join(filter(None, (str(each.get("reason") or ""), str(each.get("message") or "")))):
            yield text


def _waiting(pod: Pod) -> Iterator[Mapping[str, Any]]:
    for container in field(pod, "/status/containerStatuses") or ():
        if waits := (container.get("state") or {}).get("waiting"):
            yield waits


def removal(namespace: str, run: str) -> Undo:
    """The undo that deletes the pods of ``run``, proven when none exist. Raises ValueError for an invalid namespace.

    It includes pods of processes that undo the run: they need none after this.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"{namespace!r} is not a namespace")
    ours = f"{pods_path(namespace)}?labelSelector={quote(f'{HELPER_LABEL}=pod,{RUN_LABEL}={name_from_run(run)}')}"
    none = FactCheck(object_fact(ours, "/items/0/metadata/name"), None)
    return Undo((UndoStep(KubeCommand("DELETE", ours), unless=none),), (none,))
