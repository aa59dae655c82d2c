"""One cluster as an open connection has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from chaos.cluster.exec_stream import ExecStream
from chaos.cluster.watch_stream import WatchApi
from chaos.core.labels import FIELD_MANAGER
from chaos.core.ports import Response

_FIELD_WRITERS = ("POST", "PUT", "PATCH")  # methods that write fields


def with_field_manager(method: str, query: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The query that names the writer of fields explicitly, as proxies change the User-Agent."""
    return {**(query or {}), "fieldManager": FIELD_MANAGER} if method in _FIELD_WRITERS else query


class ExecApi(Protocol):
    """The API server as what runs programs in containers. Implemented by ApiClient."""

    def exec(self, pod_path: str, argv: Sequence[str], container: str, timeout: float) -> ExecStream:
        """Start ``argv`` in a container of the pod at an API path; connects within ``timeout`` wall seconds.

        Raises KubeUnreachable and KubeRejected; then nothing was started.
        """


class ClusterApi(WatchApi, Protocol):
    """The API server, its kubelets and its control plane. Implemented by ApiClient."""

    @property
    def server(self) -> str:
        """URL of the API server."""

    @property
    def ca_digest(self) -> str:
        """SHA-256 of the certificate authority that is trusted. Raises NodefallError if it cannot be read."""

    @property
    def risks(self) -> tuple[str, ...]:
        """What weakens the connection, for people."""

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = ...,
        accept: str = ...,
    ) -> Response:
        """One request and its response, of any status. Raises KubeUnreachable."""

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        """``certificate`` returns the PEM that the kubelet at an address serves with, read on its host."""

    def component(self, url: str) -> Response:
        """GET from a control plane component. Raises KubeUnreachable."""
