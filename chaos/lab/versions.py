"""Kubernetes versions: what differs between those that the lab simulates, a row for each difference that can be seen.

A component tests ``spec.has_feature(id)`` where the row applies. A minor version behaves as its first release: what a
patch changed is in the next row. Feature gates have their defaults, from ``pkg/features/kube_features.go`` of
kubernetes/kubernetes, which has their history since v1.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

OLDEST, NEWEST = 31, 36  # minor versions
DEFAULT = "v1.36.2"
_VERSION = re.compile(r"v1\.(\d{1,3})(\.\d{1,3})?", re.ASCII)
_GATES = "pkg/features/kube_features.go"


@dataclass(frozen=True, slots=True)
class Difference:
    """``since``: first minor version with ``text``; the earlier ones, and those in ``without``, have ``before``.

    ``source``: a pull request of kubernetes/kubernetes, its CHANGELOG, the feature gate, a file.
    """

    id: str
    since: int
    text: str
    before: str
    source: str
    without: frozenset[int] = frozenset()


DIFFERENCES = (
    Difference(
        "long-grace-period", 32,
        "`--node-monitor-grace-period` defaults to 50 s",
        "40 s",
        "#126287, CHANGELOG-1.32",
    ),
    Difference(
        "volumes-awaited", 32,
        "a graceful shutdown waits for the volumes of each group of pods to be unmounted",
        "the next group, or the power-off, follows when the containers have ended",
        "#125070, CHANGELOG-1.32; pkg/kubelet/nodeshutdown/nodeshutdown_manager.go",
    ),
    Difference(
        "admission-rejections", 32,
        "kubelets have the metric `kubelet_admission_rejections_total`",
        "there is no such metric",
        "#128556, CHANGELOG-1.32",
    ),
    Difference(
        "scaling-from-to", 32,
        "the event ScalingReplicaSet reads `Scaled up replica set x from 1 to 2`, and `from 0 to 2` for a new set",
        "`Scaled up replica set x to 2 from 1`, and `to 2` for a new set",
        "#125118, CHANGELOG-1.32; pkg/controller/deployment/sync.go",
    ),
    Difference(
        "watch-list", 32,
        "watches accept `sendInitialEvents`",
        "they answer 422: forbidden unless the feature gate WatchList is enabled",
        f"gate WatchList, {_GATES}; staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation",
        without=frozenset({33}),
    ),
    Difference(
        "swap-reported", 33,
        "Nodes have `status.nodeInfo.swap`",
        "there is no such field",
        "#129954; node-v1 in the API reference of v1.33",
    ),
    Difference(
        "no-kube-proxy-version", 33,
        "`status.nodeInfo.kubeProxyVersion` of Nodes is empty",
        "it is the kubelet's version",
        f"gate DisableNodeKubeProxyVersion, {_GATES}",
    ),
    Difference(
        "sleep-zero", 33,
        "the preStop hook `sleep` accepts 0 seconds",
        "a pod with it is invalid",
        f"gate PodLifecycleSleepActionAllowZero, {_GATES}; KEP-4818",
    ),
    Difference(
        "pod-generation", 33,
        "pods have `metadata.generation`",
        "it is unset",
        "KEP-5067, without a gate",
    ),
    Difference(
        "pod-observed-generation", 34,
        "pods have `status.observedGeneration`, and so have their conditions",
        "they do not",
        f"gate PodObservedGenerationTracking, {_GATES}; KEP-5067",
    ),
    Difference(
        "windows-graceful-shutdown", 34,
        "kubelets on Windows end pods when the machine shuts down",
        "they end none: in v1.32 and v1.33 the gate is off, in v1.31 there is none",
        f"gate WindowsGracefulNodeShutdown, {_GATES}",
    ),
    Difference(
        "report-offset", 34,
        "the first status report of a node after a change comes up to 50 % of the 5 minutes earlier or later",
        "after 5 minutes; v1.32 had the offset for a time, until #130348",
        "#130919, CHANGELOG-1.34",
    ),
    Difference(
        "terminating-replicas", 35,
        "ReplicaSets and Deployments have `status.terminatingReplicas`",
        "there is no such field",
        f"gate DeploymentReplicaSetTerminatingReplicas, {_GATES}; #133087",
    ),
    Difference(
        "nomination-cleared", 35,
        "`status.nominatedNodeName` of a pod is cleared when it is bound",
        "it stays",
        f"gate ClearingNominatedNodeNameAfterBinding, {_GATES}",
    ),
    Difference(
        "topology-labels", 35,
        "pods get the labels `topology.kubernetes.io/zone` and `region` of their node",
        "they do not",
        f"gate PodTopologyLabelsAdmission, {_GATES}; plugin/pkg/admission/podtopologylabels; recording 25",
    ),
)  # fmt: skip


def minor_of(version: str) -> int:
    """Minor version of ``v1.33`` or ``v1.33.4``. Raises ValueError for one that the lab does not simulate."""
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"kubernetes {version!r} is not a version: write it like v1.{NEWEST} or {DEFAULT}")
    if not OLDEST <= int(match[1]) <= NEWEST:
        raise ValueError(f"kubernetes {version!r} is not simulated, only v1.{OLDEST} to v1.{NEWEST}")
    return int(match[1])


def nearest_version(recorded: str) -> str:
    """The simulated version that is nearest to a recorded one such as v1.30.4 or v1.33.2-gke.100."""
    match = re.match(r"v1\.(\d+)(\.\d+)?", recorded, re.ASCII)
    if match is None:
        return DEFAULT
    minor = min(max(int(match[1]), OLDEST), NEWEST)
    return f"v1.{minor}{match[2] or ''}" if minor == int(match[1]) else f"v1.{minor}"


def git_version(version: str) -> str:
    """What components report: the first release of a minor version that is given without a patch."""
    return version if version.count(".") == 2 else f"{version}.0"


@lru_cache(maxsize=64)
def features_of(version: str) -> frozenset[str]:
    """Ids of the differences that the version has. Raises ValueError."""
    minor = minor_of(version)
    return frozenset(item.id for item in DIFFERENCES if item.since <= minor and minor not in item.without)
