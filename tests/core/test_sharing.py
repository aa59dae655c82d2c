"""Sharing changes no object, and holds equal parts once."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.core.kube import Node, Pod
from chaos.core.packing import Sharing

POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "demo", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "tolerations": [{"key": "k", "operator": "Exists"}], "containers": [{"name": "app"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def pod(**metadata: str) -> Pod:
    return msgspec.convert({**POD, "metadata": {**POD["metadata"], **metadata}}, Pod)


def test_versions_share_what_is_equal() -> None:
    sharing, first, second = Sharing(), pod(), pod(resourceVersion="2")
    sharing.share(first, None)
    sharing.share(second, first)
    assert (first, second) == (pod(), pod(resourceVersion="2"))
    assert second.spec is first.spec
    assert second.status is first.status
    assert second.metadata.labels is first.metadata.labels


def test_pods_of_a_set_share_what_they_have_in_common() -> None:
    sharing, first, other = Sharing(), pod(), pod(name="b", uid="v")
    sharing.share(first, None)
    sharing.share(other, None)
    assert other == pod(name="b", uid="v")
    assert first.spec is not None
    assert other.spec is not None
    assert other.spec is not first.spec
    assert other.spec.tolerations is first.spec.tolerations
    assert other.metadata.labels is first.metadata.labels


def test_what_differs_is_not_shared() -> None:
    sharing = Sharing()
    before = msgspec.convert({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}, Node)
    now = msgspec.convert({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}}, Node)
    sharing.share(before, None)
    sharing.share(now, before)
    assert now.status is not None
    assert now.status.capacity == {"cpu": "2"}
    assert before.status is not None
    assert before.status.capacity == {"cpu": "1"}
