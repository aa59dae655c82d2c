"""Raw access to one API server and its kubelets, with the identity of a kubeconfig."""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from chaos.cluster.access import Access, Pem, load_access
from chaos.cluster.api import Timeouts, WatchStream, exchange, read_body, send, with_field_manager
from chaos.cluster.connections import limit_rest
from chaos.cluster.credentials import Credentials, Headers, Identity
from chaos.cluster.errors import OTHER, RESET, TLS, KubeRejected, KubeUnreachable, from_response
from chaos.cluster.exec_stream import ExecStream, exec_path, open_exec
from chaos.cluster.pools import Pool, Pools, direct_pool
from chaos.cluster.reads import METADATA_LIST
from chaos.core.api_path import refuse_unsafe_path
from chaos.core.errors import NodefallError, bad_input
from chaos.core.ports import Response

# Wall seconds.
_CONNECT_TIMEOUT = 5.0
_REQUEST_TIMEOUT = 30.0
_HEADERS_TIMEOUT = 10.0  # an API server sends a watch's headers at once
_WATCH_IDLE_TIMEOUT = 90.0  # bookmarks come about once a minute
_KUBELET_TIMEOUTS = 2.0, 5.0  # to connect, to respond
_RELOAD_PERIOD = 30.0
_JSON = (("Accept", "application/json"),)
_log = logging.getLogger(__name__)


class ApiClient:
    """One API server. Thread-safe. Only a GET is ever sent again, when its keep-alive connection was dead."""

    def __init__(
        self, load: Callable[[], Access], kubelet_ca: str | None = None, component_ca: str | None = None
    ) -> None:
        self._load = load
        self._kubelet_ca, self._component_ca = kubelet_ca, component_ca
        self._lock = threading.Lock()
        self._loaded_at = time.monotonic()
        self._access = load()
        self._credentials = Credentials(self._access)
        self._pools: Pools | None = None
        self._kubelet_certificate: Callable[[str], str] | None = None
        if not self._credentials.needs_plugin:
            self._current()  # for errors in the files

    @property
    def server(self) -> str:
        return self._access.server

    @property
    def ca_digest(self) -> str:
        """The SHA-256 of the certificate authority that the kubeconfig trusts, or of an empty text without one.

        Raises NodefallError if it cannot be read.
        """
        return self._access.ca_digest

    @property
    def uses_proxy(self) -> bool:
        return self._access.proxy is not None

    @property
    def risks(self) -> tuple[str, ...]:
        """Weaknesses of the connection, for people."""
        return self._access.risks

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
        query = with_field_manager(method, query)
        data = None if body is None else msgspec.json.encode(body)
        headers: Headers = (("Accept", accept), *((("Content-Type", content_type),) if data is not None else ()))
        url = self._url(path, query)
        timeouts = (min(_CONNECT_TIMEOUT, timeout), timeout)
        for is_last in (False, True):
            pools, identity = self._current()
            response = _exchange_again(pools.api, method, url, data, (*identity.headers, *headers), timeouts)
            if response.status != 401 or is_last or not self._renew(identity):
                break
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
        url = self._url(exec_path(pod_path, argv, container), None)
        for is_last in (False, True):
            pools, identity = self._current()
            try:
                return open_exec(pools.api, url, identity.headers, timeout)
            except KubeRejected as error:
                if is_last or error.status != 401 or not self._renew(identity):
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
        pools, headers = self._direct("the kubelet")
        pool = pools.pinned.get(address, pools.kubelet)
        try:
            return exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)
        except KubeUnreachable as error:
            pools.pinned.pop(address, None)
            if error.kind != TLS or self._kubelet_certificate is None:
                raise
            pool = self._pinned_pool(self._kubelet_certificate, pools, address, error)
        response = exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)
        pools.pinned[address] = pool
        return response

    def _pinned_pool(self, source: Callable[[str], str], pools: Pools, address: str, error: KubeUnreachable) -> Pool:
        """A pool that trusts the certificate read on the host. Raises ``error`` if there is none."""
        try:
            certificate = Pem("certificate of the kubelet", data=source(address).encode())
        except NodefallError as unknown:
            why = f"{error.message}; its certificate cannot be read on its host: {unknown.message}"
            raise KubeUnreachable(TLS, why, hint=error.hint) from unknown
        # Names are not compared: a CA that a kubelet made for itself signs nothing else.
        return direct_pool(pools.access, pools.identity, certificate, assert_hostname=False)

    def component(self, url: str) -> Response:
        """GET from a control plane component, whose certificate ``component_ca`` or the cluster's CA has signed.

        Raises KubeUnreachable; without that proof of identity no credentials are sent.
        """
        pools, headers = self._direct("a control plane component")
        return exchange(pools.component, "GET", url, None, headers, _KUBELET_TIMEOUTS)

    def _direct(self, what: str) -> tuple[Pools, Headers]:
        """For a request past the API server. Raises KubeUnreachable where it would not be as the impersonated user."""
        if name := self._credentials.impersonates:
            message = f"{what} is not asked: only the API server impersonates {name}, as the kubeconfig requires (as)"
            raise KubeUnreachable(OTHER, message, hint="set cluster.allowNodeProxy in the inventory for kubelets")
        pools, identity = self._current()
        return pools, (*identity.headers, *_JSON)

    def close(self) -> None:
        """Close all connections."""
        if self._pools:
            self._pools.close()

    def _current(self) -> tuple[Pools, Identity]:
        """The pools and the identity for a request. Raises KubeUnreachable, BadInput."""
        credentials = self._credentials
        identity = credentials.identity()  # not under the lock: a plug-in takes its time
        with self._lock:
            if self._pools is None:
                self._pools = self._make_pools(identity)
            elif self._pools.is_outdated(identity):
                try:
                    fresh = self._make_pools(identity)
                except NodefallError as error:  # the files are being replaced
                    _log.debug("the former client certificate is used: %s", error)
                else:
                    self._pools.close()
                    self._pools = fresh
            return self._pools, identity

    def _make_pools(self, identity: Identity) -> Pools:
        return Pools(self._access, identity, self._kubelet_ca, self._component_ca)

    def _renew(self, used: Identity) -> bool:
        """After a 401: whether there may be other credentials than ``used``. Raises KubeUnreachable."""
        return self._credentials.renew(used) or self._reload() or self._credentials.identity() != used

    def _reload(self) -> bool:
        """Read the kubeconfig again after a 401, as tokens and certificates change. False if just done."""
        with self._lock:
            if time.monotonic() - self._loaded_at < _RELOAD_PERIOD:
                return False
            self._loaded_at = time.monotonic()
            try:
                access = self._load()
                credentials = Credentials(access)
            except NodefallError as error:
                _log.warning("the kubeconfig cannot be read again: %s", error)
                return False  # the caller reports the 401
            self._access, self._credentials, self._pools = access, credentials, None
            return True

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        """The URL of a request. Raises Refused for a path that is not of plain names."""
        refuse_unsafe_path(path)
        encoded = "&".join(f"{key}={quote(str(value))}" for key, value in (query or {}).items())
        joint = ("&" if "?" in path else "?") if encoded else ""
        return f"{self._access.server}{path}{joint}{encoded}"

    def _open_watch(self, path: str, query: Mapping[str, str]) -> Any:
        """The response of a watch that was accepted. Raises KubeUnreachable, KubeRejected."""
        url = self._url(path, query)
        pools, identity = self._current()
        begin = time.monotonic()
        response = send(pools.api, "GET", url, None, (*identity.headers, *_JSON), (_CONNECT_TIMEOUT, _HEADERS_TIMEOUT))
        _log.debug("watch %s: %d in %.3f s", url, response.status, time.monotonic() - begin)
        if response.status != 200:
            status, body = response.status, read_body(response, url, _HEADERS_TIMEOUT)
            if status == 401:
                self._renew(identity)  # for the next attempt
            raise from_response(Response(status, body, {}), f"watch of {path}")
        limit_rest(response, None)
        sock = getattr(response.connection, "sock", None)
        if sock is not None:
            sock.settimeout(_WATCH_IDLE_TIMEOUT)
        return response


def connect(
    kubeconfig: str, context: str | None = None, kubelet_ca: str | None = None, component_ca: str | None = None
) -> ApiClient:
    """Client of the cluster of ``context`` (default: the current one). Nothing is sent yet.

    ``kubeconfig`` as in :func:`load_access`. Raises BadInput for files, NodefallError when there are no credentials.
    """
    for ca, name in ((kubelet_ca, "kubeletCA"), (component_ca, "controllerManager.ca")):
        if ca and not Path(ca).is_file():
            raise bad_input(ca, "there is no such file", f"{name} in the inventory names it")
    return ApiClient(lambda: load_access(kubeconfig, context), kubelet_ca, component_ca)


def _exchange_again(
    pool: Pool, method: str, url: str, data: bytes | None, headers: Headers, timeouts: Timeouts
) -> Response:
    """One request and its response; a GET is sent again if its connection was dead."""
    try:
        return exchange(pool, method, url, data, headers, timeouts)
    except KubeUnreachable as error:
        if method != "GET" or error.kind != RESET:
            raise
    return exchange(pool, method, url, data, headers, timeouts)


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
    except (ValueError, OverflowError):
        return None
