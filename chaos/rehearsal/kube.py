"""The API server, kubelets and control plane of a rehearsal, by call.

A request takes no time, but for what the server waits for itself. Time-outs are in cluster time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from chaos.cluster.api import with_field_manager
from chaos.cluster.errors import REFUSED, TIMEOUT, KubeUnreachable
from chaos.cluster.reads import METADATA_LIST
from chaos.core.errors import Refused
from chaos.core.labels import FIELD_MANAGER
from chaos.core.ports import Response
from chaos.lab.facade import Answer, DirectLab, Task
from chaos.rehearsal.turns import Turns

CONTROLLERS = "https://127.0.0.1:10257"  # of kube-controller-manager
_REQUEST_TIMEOUT = 30.0  # seconds
_KUBELET_TIMEOUT = 5.0


class DirectKube:
    """Implements ``chaos.cluster.api.ClusterApi``."""

    server = "https://127.0.0.1:6443"
    ca_digest = ""
    risks: tuple[str, ...] = ()

    def __init__(self, lab: DirectLab, turns: Turns) -> None:
        self._lab, self._turns = lab, turns
        self._headers = {"Authorization": f"Bearer {lab.token}", "User-Agent": FIELD_MANAGER}

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = _REQUEST_TIMEOUT,
        accept: str = "application/json",
    ) -> Response:
        """One request and its response, whatever the status. Raises KubeUnreachable after ``timeout``."""
        pairs = (with_field_manager(method, query) or {}).items()
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._headers, "Accept": accept}
        task = self._lab.request(method, path, headers, pairs, data, content_type)
        return self._response(task, self.server, timeout)

    def metadata(self, path: str, query: Mapping[str, str]) -> Response:
        """See :class:`chaos.cluster.api.WatchApi`."""
        return self.request("GET", path, query, accept=METADATA_LIST)

    def stream(self, path: str, query: Mapping[str, str]) -> NoReturn:  # noqa: ARG002 - of the port
        """Raises Refused: what changes is recorded as it happens, without a watch."""
        raise Refused(f"watch of {path}: a rehearsal has no watches", hint="read lists, or use the recorded entries")

    def probe(self, timeout: float) -> float | None:
        """See :class:`chaos.cluster.api.WatchApi`; the server is ready, and has the time of the run."""
        self.request("GET", "/readyz", timeout=timeout)
        return None

    def kubelet(self, address: str, port: int, path: str) -> Response:
        """GET from a kubelet's own port. Raises KubeUnreachable."""
        where = f"https://{address}:{port}{path}"
        task = self._lab.read_kubelet(address, port, path, self._headers)
        if task is None:
            raise KubeUnreachable(REFUSED, f"{where}: connection refused", hint="check the server and its port")
        return self._response(task, where, _KUBELET_TIMEOUT)

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        """No-op: kubelets are reached by call."""

    def component(self, url: str) -> Response:
        """GET from kube-controller-manager, at ``CONTROLLERS``."""
        return self._response(self._lab.read_controllers(urlsplit(url).path, self._headers), url, _KUBELET_TIMEOUT)

    def _response(self, task: Task[Answer], where: str, timeout: float) -> Response:
        if not task.done:
            self._turns.block(self._lab.sim.now + timeout, lambda end: task.add_done_callback(lambda _: end()))
        if not task.done:
            task.cancel()
            raise KubeUnreachable(TIMEOUT, f"{where}: no answer in time", sent=True)
        answer = task.result()
        return Response(answer.status, answer.body, answer.headers)
