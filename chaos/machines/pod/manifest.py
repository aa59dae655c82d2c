"""The helper pod of a node: privileged, on its host's PIDs and network, doing nothing by itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.core.document import DurationText, Model
from chaos.core.duration import parse_duration
from chaos.core.inventory import NamespaceName
from chaos.core.labels import HELPER_LABEL, HELPER_NODE, HELPER_SESSION, MANAGED_BY_LABEL, RUN_LABEL

CONTAINER = "host"
GENERATE_NAME = "nodefall-host-"
IMAGE = "docker.io/library/busybox:1.37"
# Into every namespace of PID 1 but that of users and cgroups: as a login shell of root would be.
ENTER = ("nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--")


class PodOptions(Model):
    image: str = Field(IMAGE, min_length=1, description="has sh, sleep and nsenter; pulled if the node has not got it")
    namespace: NamespaceName | None = Field(
        None, description="of the pods; it must admit privileged ones; default: cluster.namespace"
    )
    priority_class: str = Field(
        "system-node-critical",
        alias="priorityClass",
        description='of the pods: this one is not evicted under pressure, nor ended first at a shutdown; "" for none',
    )
    image_pull_policy: Literal["IfNotPresent", "Never", "Always"] = Field("IfNotPresent", alias="imagePullPolicy")
    image_pull_secret: str | None = Field(None, alias="imagePullSecret", description="a Secret in the namespace")
    ready_timeout: DurationText = Field("60s", alias="readyTimeout", description="until a pod must be Ready")
    lifetime: DurationText = Field(
        "4h", description="after which the kubelet ends a pod that nodefall could not remove; longer than any run"
    )

    @property
    def is_critical(self) -> bool:
        """Whether a kubelet ends other pods to make room for these."""
        return self.priority_class.startswith("system-")  # no other class may be as high


def helper_labels(session: str, run: str) -> dict[str, str]:
    """Labels of the pods of one process; ``run``: the ID of its run, "" without one."""
    labels = {**MANAGED_BY_LABEL, HELPER_LABEL: "pod", HELPER_SESSION: session}
    return labels | ({RUN_LABEL: run} if run else {})


def helper_pod(node: str, namespace: str, options: PodOptions, labels: dict[str, str]) -> dict[str, Any]:
    """The manifest of a new pod on ``node``, past the scheduler."""
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
