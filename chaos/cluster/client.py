"""Raw access to one API server and its kubelets, with the official client's configuration and credentials."""

# ruff: noqa: PLC0415 - kubernetes is slow to import
from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from chaos.cluster.api import WatchStream, exchange, make_pool, read_body, send, with_field_manager
from chaos.cluster.errors import OTHER, RESET, TLS, KubeRejected, KubeUnreachable, from_response
from chaos.cluster.exec_stream import ExecStream, exec_path, open_exec
from chaos.cluster.kubeconfig import connection_risks, load_configuration
from chaos.cluster.reads import METADATA_LIST
from chaos.core.api_path import refuse_unsafe_path
from chaos.core.errors import NodefallError, bad_input
from chaos.core.labels import FIELD_MANAGER
from chaos.core.ports import Response
from chaos.core.redaction import register_secret

# Wall seconds.
_CONNECT_TIMEOUT = 5.0
_REQUEST_TIMEOUT = 30.0
_HEADERS_TIMEOUT = 10.0  # an API server sends a watch's headers at once
_WATCH_IDLE_TIMEOUT = 90.0  # bookmarks come about once a minute
_KUBELET_TIMEOUTS = 2.0, 5.0  # to connect, to respond
_RELOAD_PERIOD = 30.0
_CREDENTIALS_PERIOD = 1.0
_log = logging.getLogger(__name__)


class ApiClient:
    """One API server. Thread-safe. Only a GET is ever sent again, when its keep-alive connection was dead."""

    def __init__(self, load: Callable[[], Any], kubelet_ca: str | None = None, component_ca: str | None = None) -> None:
        self._load = load
        self._kubelet_ca, self._component_ca = kubelet_ca, component_ca
        self._lock = threading.Lock()
        self._loaded_at = 0.0
        self._credentials: tuple[float, Any, dict[str, str]] = (0.0, None, {})  # since when, of which client
        self._client: Any = None
        self._kubelet_pool: Any = None
        self._component_pool: Any = None
        self._kubelet_certificate: Callable[[str], str] | None = None
        self._pinned_pools: dict[str, Any] = {}  # by the address of a kubelet with a self-signed certificate
        self._reload(None)

    @property
    def server(self) -> str:
        return str(self._client.configuration.host)

    @property
    def ca_digest(self) -> str:
        """SHA-256 of the certificate authority that the kubeconfig trusts; that of nothing if it names none.

        Raises NodefallError if it cannot be read.
        """
        path = self._client.configuration.ssl_ca_cert
        try:
            return hashlib.sha256(Path(path).read_bytes() if path else b"").hexdigest()
        except OSError as error:
            raise NodefallError(f"{path}: cannot be read: {error.strerror}") from error

    @property
    def uses_proxy(self) -> bool:
        return bool(self._client.configuration.proxy)

    @property
    def risks(self) -> tuple[str, ...]:
        """What weakens the connection, for people."""
        return connection_risks(self._client.configuration)

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
        """One request and its response, whatever the status; ``timeout`` in wall seconds. Raises KubeUnreachable."""
        client, query = self._client, with_field_manager(method, query)
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Accept": accept} | ({"Content-Type": content_type} if data is not None else {})
        response = self._send_with_retry(client, method, path, query, data, headers, timeout)
        if response.status == 401 and self._reload(client):
            response = self._send_with_retry(self._client, method, path, query, data, headers, timeout)
        return response

    def metadata(self, path: str, query: Mapping[str, str]) -> Response:
        """See :class:`chaos.cluster.api.WatchApi`."""
        return self.request("GET", path, query, accept=METADATA_LIST)

    def stream(self, path: str, query: Mapping[str, str]) -> WatchStream:
        """A watch; the request is sent on entry."""
        return WatchStream(lambda: self._open_watch(path, query), f"watch of {path}")

    def probe(self, timeout: float) -> float | None:
        """See :class:`chaos.cluster.api.WatchApi`."""
        response = self.request("GET", "/readyz", timeout=timeout)
        if response.status >= 500 or response.status == 429:
            raise KubeRejected(response.status, f"{self.server}: /readyz answers {response.status}")
        return _date(response)

    def exec(self, pod_path: str, argv: Sequence[str], container: str, timeout: float) -> ExecStream:
        """See :class:`chaos.cluster.api.ExecApi`."""
        for is_last in (False, True):
            client = self._client
            url, headers = self._prepare(client, exec_path(pod_path, argv, container), None)
            given = [f"{name}: {value}" for name, value in headers.items() if name.lower() != "accept"]
            try:
                return open_exec(client.configuration, url, given, timeout)
            except KubeRejected as error:
                if is_last or error.status != 401 or not self._reload(client):
                    raise
        raise AssertionError  # the loop returns or raises

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        """``certificate`` returns the PEM that the kubelet at an address serves with, read on its host.

        It raises NodefallError.
        """
        self._kubelet_certificate = certificate

    def kubelet(self, address: str, port: int, path: str) -> Response:
        """GET from a kubelet's own port. Its certificate must be signed by ``kubeletCA`` or the cluster's CA.

        A self-signed certificate must be the one that is read on the kubelet's host. Raises KubeUnreachable; without
        that proof of identity no credentials are sent.
        """
        refuse_unsafe_path(path)
        if not _is_address(address):  # kubelets report it, and it becomes part of a URL
            raise KubeUnreachable(OTHER, f"the address {address!r} of a node is not an IP address")
        host = f"[{address}]" if ":" in address else address
        url = f"https://{host}:{port}{path}"
        with self._lock:
            headers = self._headers(self._client, path)
            pool = self._pinned_pools.pop(address, self._kubelet_pool)
        try:
            response = exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)
        except KubeUnreachable as error:
            if error.kind != TLS or self._kubelet_certificate is None:
                raise
            pool = self._pinned_pool(self._kubelet_certificate, address, error)
            response = exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)
        if pool is not self._kubelet_pool:
            self._pinned_pools[address] = pool
        return response

    def _pinned_pool(self, source: Callable[[str], str], address: str, error: KubeUnreachable) -> Any:
        """A pool that trusts the certificate read on the host. Raises ``error`` if there is none."""
        try:
            certificate = source(address)
        except NodefallError as unknown:
            why = f"{error.message}; its certificate cannot be read on its host: {unknown.message}"
            raise KubeUnreachable(TLS, why, hint=error.hint) from unknown
        # Names are not compared: a CA that a kubelet made for itself signs nothing else.
        return make_pool(self._client.configuration, ca_cert_data=certificate, assert_hostname=False)

    def component(self, url: str) -> Response:
        """GET from a control plane component, whose certificate ``component_ca`` or the cluster's CA has signed.

        Raises KubeUnreachable; without that proof of identity no credentials are sent.
        """
        with self._lock:
            headers, pool = self._headers(self._client, urlsplit(url).path), self._component_pool
        return exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        self._kubelet_pool.clear()
        self._component_pool.clear()

    def _reload(self, used: Any) -> bool:
        """Read the kubeconfig again after a 401, as token files and certificates change. False if just done."""
        from kubernetes.client.api_client import ApiClient as KubernetesApiClient

        with self._lock:
            if self._client is not used:
                return True
            if used is not None and time.monotonic() - self._loaded_at < _RELOAD_PERIOD:
                return False
            try:
                configuration = self._load()
            except NodefallError:
                if used is None:
                    raise
                return False  # the caller reports the 401
            self._loaded_at = time.monotonic()
            self._client = KubernetesApiClient(configuration)
            self._kubelet_pool, self._component_pool = (
                make_pool(configuration, ca_certs=ca or configuration.ssl_ca_cert)
                for ca in (self._kubelet_ca, self._component_ca)
            )
            self._pinned_pools = {}
            return True

    def _headers(self, client: Any, path: str) -> dict[str, str]:
        """Credentials, refreshed by the official client when they expire; the lock is held.

        Each look at whether they do costs it as much as sending a request, and it renews them minutes before.
        """
        since, owner, headers = self._credentials
        now = time.monotonic()
        if owner is not client or now - since > _CREDENTIALS_PERIOD:
            _, _, headers, _, _ = client.param_serialize("GET", path, auth_settings=["BearerToken"])
            register_secret(headers.get("authorization", "").removeprefix("Bearer "))  # a plug-in may have a new one
            headers |= {"User-Agent": FIELD_MANAGER, "Accept": "application/json"}
            self._credentials = now, client, headers
        return headers

    def _prepare(self, client: Any, path: str, query: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
        """URL and headers of a request. Raises Refused for a path that is not of plain names."""
        refuse_unsafe_path(path)
        with self._lock:  # a refresh runs once, not in every thread
            headers = self._headers(client, path)
        encoded = client.parameters_to_url_query(list((query or {}).items()), {})
        joint = ("&" if "?" in path else "?") if encoded else ""
        return f"{client.configuration.host}{path}{joint}{encoded}", headers

    def _send_with_retry(
        self,
        client: Any,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        timeout: float,
    ) -> Response:
        url, credentials = self._prepare(client, path, query)
        pool = client.rest_client.pool_manager
        timeouts = (min(_CONNECT_TIMEOUT, timeout), timeout)
        try:
            return exchange(pool, method, url, data, credentials | headers, timeouts)
        except KubeUnreachable as error:
            if method != "GET" or error.kind != RESET:
                raise
        return exchange(pool, method, url, data, credentials | headers, timeouts)

    def _open_watch(self, path: str, query: Mapping[str, str]) -> Any:
        """The response of a watch that was accepted. Raises KubeUnreachable, KubeRejected."""
        client = self._client
        url, headers = self._prepare(client, path, query)
        pool, timeouts, begin = client.rest_client.pool_manager, (_CONNECT_TIMEOUT, _HEADERS_TIMEOUT), time.monotonic()
        response = send(pool, "GET", url, None, headers, timeouts)
        _log.debug("watch %s: %d in %.3f s", url, response.status, time.monotonic() - begin)
        if response.status != 200:
            status, body = response.status, read_body(response, url, _HEADERS_TIMEOUT)
            if status == 401:
                self._reload(client)  # for the next attempt
            raise from_response(Response(status, body, {}), f"watch of {path}")
        sock = getattr(response.connection, "sock", None)
        if sock is not None:
            sock.settimeout(_WATCH_IDLE_TIMEOUT)
        return response


def connect(
    kubeconfig: str, context: str | None = None, kubelet_ca: str | None = None, component_ca: str | None = None
) -> ApiClient:
    """Client of the cluster of ``context`` (default: the current one). Nothing is sent yet.

    Raises BadInput for files, and NodefallError when there are no credentials.
    """
    for ca, name in ((kubelet_ca, "kubeletCA"), (component_ca, "controllerManager.ca")):
        if ca and not Path(ca).is_file():
            raise bad_input(ca, "there is no such file", f"{name} in the inventory names it")
    return ApiClient(lambda: load_configuration(kubeconfig, context), kubelet_ca, component_ca)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _date(response: Response) -> float | None:
    text = {key.lower(): value for key, value in response.headers.items()}.get("date", "")
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
