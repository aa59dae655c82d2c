"""Somebody else with access to a cluster: changes a run's ConfigMap, or takes the lock."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos.cluster.client import connect
from chaos.cluster.lease import PROCESS
from chaos.cluster.replica import PREFIX
from chaos.core.command import MERGE_PATCH

_CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/nodefall"
_SCALE = "/apis/apps/v1/namespaces/default/deployments/web/scale"
# Whatever the format of a journal is, it names nodes and objects: others of the same lab.
OTHER_NAMES = {
    "worker-1": "worker-3",
    "worker-2": "worker-1",
    "worker-3": "worker-1",
    **dict.fromkeys(("control-plane-1", "control-plane-2", "control-plane-3"), "worker-1"),
    "windows-1": "worker-1",
    "windows-2": "worker-1",
    "web": "agent",
    "held": "agent",
    "nodefall-nowhere": "worker-1",
}
_NAME = re.compile(r"(?<![\w-])(?:" + "|".join(OTHER_NAMES) + r")(?![\w-])")
HOLDER = "eve@elsewhere/1"
DURATION = 1  # seconds that the lock of a thief lasts


class Intruder:
    """Uses the API, not the lab's memory. Every method raises AssertionError if the server refuses."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kube = connect(str(kubeconfig))
        self._end = threading.Event()
        self._thief: threading.Thread | None = None

    def replica(self) -> dict[str, Any] | None:
        """The ConfigMap of the only run that has one."""
        items = self._request("GET", _CONFIGMAPS)["items"]
        return next((item for item in items if item["metadata"]["name"].startswith(PREFIX)), None)

    def edit(self) -> None:
        replica = self._the_replica()
        edited = {key: _NAME.sub(lambda m: OTHER_NAMES[m[0]], text) for key, text in replica["data"].items()}
        assert edited != replica["data"], f"no name to replace in {edited}"
        self._write(replica, edited)

    def garble(self) -> None:
        replica = self._the_replica()
        self._write(replica, {key: text[: len(text) // 2] for key, text in replica["data"].items()})

    def delete(self) -> None:
        self._request("DELETE", f"{_CONFIGMAPS}/{self._the_replica()['metadata']['name']}")

    def replay(self, data: Mapping[str, str]) -> None:
        """The ConfigMap gets the ``data`` of another run."""
        self._write(self._the_replica(), data)

    def scale(self, replicas: int) -> None:
        self._request("PATCH", _SCALE, {"spec": {"replicas": replicas}})

    def steal(self) -> None:
        """Take the lock, and renew it until ``leave``."""
        self._end = threading.Event()
        self._renew(0)
        self._thief = threading.Thread(target=self._keep, daemon=True)
        self._thief.start()

    def leave(self, *, delete: bool) -> None:
        """The thief no longer renews the lock. ``delete``: and gives it up."""
        thief, self._thief = self._thief, None
        if thief is None:
            return
        self._end.set()
        thief.join()
        if delete:
            self._request("DELETE", _LEASE)

    def remove_lock(self) -> None:
        """Delete what a thief left of its lock, or the next run would wait for it."""
        response = self._kube.request("GET", _LEASE)
        if response.status == 200 and json.loads(response.body)["spec"]["holderIdentity"] == HOLDER:
            self._request("DELETE", _LEASE)

    def close(self) -> None:
        self.leave(delete=False)
        self._kube.close()

    def _keep(self) -> None:
        number = 0
        while not self._end.wait(DURATION / 4):
            number += 1
            self._renew(number)

    def _renew(self, number: int) -> None:
        """``number`` makes each a change, however fast they follow."""
        spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": DURATION, "leaseTransitions": 1000}
        spec["renewTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        annotations = {PROCESS: None, "example.com/renewed": str(number)}
        self._request("PATCH", _LEASE, {"metadata": {"annotations": annotations}, "spec": spec})

    def _the_replica(self) -> dict[str, Any]:
        replica = self.replica()
        assert replica is not None, "no run has a ConfigMap"
        return replica

    def _write(self, replica: dict[str, Any], data: Mapping[str, str]) -> None:
        metadata = {key: replica["metadata"][key] for key in ("name", "namespace", "labels")}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
        self._request("PUT", f"{_CONFIGMAPS}/{metadata['name']}", body)

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        response = self._kube.request(method, path, body=body, content_type=content_type)
        assert response.status < 300, (method, path, response.status, response.body)
        return dict(json.loads(response.body))
