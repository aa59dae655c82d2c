"""Raw access to one API server and its kubelets, with the official client's configuration and credentials."""

# ruff: noqa: PLC0415 - kubernetes and urllib3 are slow to import
from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from chaos.kube.errors import OTHER, TLS, KubeRejected, KubeUnreachable, from_exception
from chaos.kube.kubeconfig import load_configuration
from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.errors import NodefallError, bad_input
from chaos.model.ports import KubeApi, Response

__all__ = ["ApiClient", "KubeRejected", "KubeUnreachable", "WatchApi", "WatchStream", "cluster_uid", "connect"]

# Wall seconds.
_CONNECT_TIMEOUT = 5.0
_REQUEST_TIMEOUT = 30.0
_HEADERS_TIMEOUT = 10.0  # an API server sends a watch's headers at once
_WATCH_IDLE_TIMEOUT = 90.0  # of a watch; bookmarks come about once a minute
_KUBELET_TIMEOUTS = 2.0, 5.0  # to connect, to answer
_RELOAD_PERIOD = 30.0
_CHUNK = 65536
_MAX_BODY_BYTES = 512 << 20  # bytes of an answer; lists come in pages
T = TypeVar("T")


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Uid(msgspec.Struct):
    uid: str = ""


class _Namespace(msgspec.Struct):
    metadata: _Uid


class WatchStream:
    """An open watch: a context manager over raw chunks. Raises KubeUnreachable and, on entry, KubeRejected."""

    def __init__(self, opened: Callable[[], Any], where: str) -> None:
        self._open = opened
        self._where = where
        self._response: Any = None
        self._aborted = threading.Event()

    def __enter__(self) -> Iterator[bytes]:
        self._response = self._open()
        return self._chunks()

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def abort(self) -> None:
        """End it from another thread; its reader gets a KubeUnreachable."""
        self._aborted.set()
        if self._response is not None:
            with suppress(ValueError, RuntimeError, OSError):  # it has just ended by itself
                self._response.shutdown()

    def _chunks(self) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError

        chunks = self._response.stream(_CHUNK)
        while not self._aborted.is_set():
            try:
                chunk = next(chunks, None)
            except (HTTPError, OSError, ValueError) as error:  # ValueError: reading from what abort has shut
                if self._aborted.is_set():
                    break
                raise from_exception(error, self._where) from error
            if self._aborted.is_set():  # what is read after a shutdown is not to be trusted
                break
            if chunk is None:
                return
            yield chunk
        raise KubeUnreachable("reset", f"{self._where}: the watch was given up")


class WatchApi(KubeApi, Protocol):
    """What the observers of this folder need beyond :class:`KubeApi`."""

    def stream(self, path: str, query: Mapping[str, str]) -> WatchStream: ...

    def probe(self, timeout: float) -> float | None:
        """What time it is by the server's clock, in whole seconds, if it tells.

        Raises KubeUnreachable or KubeRejected unless the server says in ``timeout`` wall seconds that it works.
        """


class ApiClient:
    """One API server. Thread-safe. Nothing is sent twice but a GET whose kept connection turned out to be dead."""

    def __init__(self, load: Callable[[], Any], kubelet_ca: str | None = None, component_ca: str | None = None) -> None:
        self._load = load
        self._kubelet_ca, self._component_ca = kubelet_ca, component_ca
        self._lock = threading.Lock()
        self._loaded_at = 0.0
        self._client: Any = None
        self._kubelet_pool: Any = None
        self._component_pool: Any = None
        self._kubelet_certificate: Callable[[str], str] | None = None
        self._pinned_pools: dict[str, Any] = {}  # pools, by the address of a kubelet whose host has vouched for it
        self._reload(None)

    @property
    def server(self) -> str:
        return str(self._client.configuration.host)

    @property
    def uses_proxy(self) -> bool:
        return bool(self._client.configuration.proxy)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = _REQUEST_TIMEOUT,
    ) -> Response:
        """One request and its answer, whatever the status; ``timeout`` in wall seconds. Raises KubeUnreachable."""
        client = self._client
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        response = self._send_with_retry(client, method, path, query, data, headers, timeout)
        if response.status == 401 and self._reload(client):
            response = self._send_with_retry(self._client, method, path, query, data, headers, timeout)
        return response

    def stream(self, path: str, query: Mapping[str, str]) -> WatchStream:
        """A watch; opened on entry."""
        return WatchStream(lambda: self._open_watch(path, query), f"watch of {path}")

    def probe(self, timeout: float) -> float | None:
        response = self.request("GET", "/readyz", timeout=timeout)
        if response.status >= 500 or response.status == 429:
            raise KubeRejected(response.status, f"{self.server}: /readyz answers {response.status}")
        return _date(response)

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        """``certificate``: what the kubelet at an address serves with, PEM, as its host says; raises NodefallError."""
        self._kubelet_certificate = certificate

    def kubelet(self, address: str, port: int, path: str) -> Response:
        """GET from a kubelet's own port. Its certificate must be signed by ``kubeletCA`` or the cluster's CA.

        One that it signed itself must be the one that its host tells. Raises KubeUnreachable; without that proof of who
        it is, no credentials are sent.
        """
        if not _is_address(address):  # a kubelet writes it, and a URL is made of it
            raise KubeUnreachable(OTHER, f"the address {address!r} of a node is no IP address")
        host = f"[{address}]" if ":" in address else address
        url = f"https://{host}:{port}{path}"
        with self._lock:
            headers = self._headers(self._client, path)
            pool = self._pinned_pools.pop(address, self._kubelet_pool)
        try:
            answer = _exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)
        except KubeUnreachable as error:
            if error.kind != TLS or self._kubelet_certificate is None:
                raise
            pool = self._pinned_pool(address, error)
            answer = _exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)
        if pool is not self._kubelet_pool:
            self._pinned_pools[address] = pool
        return answer

    def _pinned_pool(self, address: str, error: KubeUnreachable) -> Any:
        """A pool that trusts what the host says. Raises ``error`` where it says nothing."""
        assert self._kubelet_certificate is not None  # noqa: S101 - asked for by the caller
        try:
            certificate = self._kubelet_certificate(address)
        except NodefallError as unknown:
            why = f"{error.message}; its host does not vouch for it: {unknown.message}"
            raise KubeUnreachable(TLS, why, hint=error.hint) from unknown
        # Names are not compared: a CA that a kubelet made for itself signs nothing else.
        return _pool(self._client.configuration, ca_cert_data=certificate, assert_hostname=False)

    def component(self, url: str) -> Response:
        """GET from a component of the control plane, whose certificate ``component_ca`` or the cluster's CA has signed.

        Raises KubeUnreachable; without that proof of who it is, no credentials are sent.
        """
        with self._lock:
            headers, pool = self._headers(self._client, urlsplit(url).path), self._component_pool
        return _exchange(pool, "GET", url, None, headers, _KUBELET_TIMEOUTS)

    def close(self) -> None:
        self._client.close()
        self._kubelet_pool.clear()
        self._component_pool.clear()

    def _reload(self, used: Any) -> bool:
        """Read the kubeconfig again after a 401: token files and certificates change. False if that was just done."""
        from kubernetes.client.api_client import ApiClient

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
                return False  # the 401 is the answer
            self._loaded_at = time.monotonic()
            self._client = ApiClient(configuration)
            self._kubelet_pool, self._component_pool = (
                _pool(configuration, ca_certs=ca or configuration.ssl_ca_cert)
                for ca in (self._kubelet_ca, self._component_ca)
            )
            self._pinned_pools = {}
            return True

    @staticmethod
    def _headers(client: Any, path: str) -> dict[str, str]:
        """Credentials, refreshed by the client where they expire."""
        _, _, headers, _, _ = client.param_serialize("GET", path, auth_settings=["BearerToken"])
        return {**headers, "User-Agent": "nodefall", "Accept": "application/json"}

    def _prepare(self, client: Any, path: str, query: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
        with self._lock:  # a refresh runs once, not in every thread
            headers = self._headers(client, path)
        encoded = client.parameters_to_url_query(list((query or {}).items()), {})
        return client.configuration.host + path + (f"?{encoded}" if encoded else ""), headers

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
        url, own = self._prepare(client, path, query)
        pool = client.rest_client.pool_manager
        timeouts = (min(_CONNECT_TIMEOUT, timeout), timeout)
        try:
            return _exchange(pool, method, url, data, own | headers, timeouts)
        except KubeUnreachable as error:
            if method != "GET" or error.kind != "reset":
                raise
        return _exchange(pool, method, url, data, own | headers, timeouts)

    def _open_watch(self, path: str, query: Mapping[str, str]) -> Any:
        """The response of a watch that was accepted."""
        client = self._client
        url, headers = self._prepare(client, path, query)
        response = _send(
            client.rest_client.pool_manager, "GET", url, None, headers, (_CONNECT_TIMEOUT, _HEADERS_TIMEOUT)
        )
        if response.status != 200:
            status, body = response.status, _read(response, url, _HEADERS_TIMEOUT)
            if status == 401:
                self._reload(client)  # for the next try
            raise from_response(Response(status, body, {}), f"watch of {path}")
        sock = getattr(response.connection, "sock", None)
        if sock is not None:
            sock.settimeout(_WATCH_IDLE_TIMEOUT)
        return response


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _pool(configuration: Any, **trust: Any) -> Any:
    from urllib3 import PoolManager

    return PoolManager(
        num_pools=256,
        maxsize=2,
        cert_reqs="CERT_REQUIRED",
        cert_file=configuration.cert_file,
        key_file=configuration.key_file,
        **trust,
    )


def _exchange(
    pool: Any, method: str, url: str, data: bytes | None, headers: dict[str, str], timeouts: tuple[float, float]
) -> Response:
    response = _send(pool, method, url, data, headers, timeouts)
    return Response(response.status, _read(response, url, timeouts[1]), dict(response.headers))


def _send(
    pool: Any, method: str, url: str, data: bytes | None, headers: dict[str, str], timeouts: tuple[float, float]
) -> Any:
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError

    try:
        return pool.request(
            method,
            url,
            body=data,
            headers=headers,
            timeout=Timeout(connect=timeouts[0], read=timeouts[1]),
            retries=False,
            redirect=False,
            preload_content=False,
        )
    except (HTTPError, OSError) as error:
        raise from_exception(error, _origin(url)) from error


def _read(response: Any, url: str, patience: float) -> bytes:
    """The whole body, in ``patience`` wall seconds for all of it."""
    from urllib3.exceptions import HTTPError

    deadline = time.monotonic() + patience
    body = bytearray()
    try:
        for chunk in response.stream(_CHUNK):
            body += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(body) > _MAX_BODY_BYTES:
                response.close()
                raise KubeRejected(
                    response.status, f"{_origin(url)}: the answer is longer than {_MAX_BODY_BYTES >> 20} MiB"
                )
    except (HTTPError, OSError) as error:
        response.close()
        raise from_exception(error, _origin(url)) from error
    response.release_conn()
    return bytes(body)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def connect(
    kubeconfig: str, context: str | None = None, kubelet_ca: str | None = None, component_ca: str | None = None
) -> ApiClient:
    """Access to the cluster of ``context`` (default: the current one). Nothing is sent yet.

    Raises BadInput for files, and NodefallError when there are no credentials.
    """
    for ca, name in ((kubelet_ca, "kubeletCA"), (component_ca, "controllerManager.ca")):
        if ca and not Path(ca).is_file():
            raise bad_input(ca, "there is no such file", f"{name} in the inventory names it")
    return ApiClient(lambda: load_configuration(kubeconfig, context), kubelet_ca, component_ca)


def server_is_loopback(api: ApiClient) -> bool:
    """True if every address of the API server is this machine's loopback, and no proxy stands between."""
    parts = urlsplit(api.server)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return not api.uses_proxy and all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in found)


def _date(response: Response) -> float | None:
    text = {key.lower(): value for key, value in response.headers.items()}.get("date", "")
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


def cluster_uid(api: KubeApi) -> str:
    """What tells clusters apart: the uid of namespace kube-system. Raises NodefallError."""
    body = _get(api, "/api/v1/namespaces/kube-system")
    return _decode(body, _Namespace, "namespace kube-system").metadata.uid


def server_version(api: KubeApi) -> str:
    """Like ``v1.36.2``. Raises NodefallError."""
    return _decode(_get(api, "/version"), _Version, "/version").git_version


def _decode(body: bytes, type_: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except DECODE_ERRORS as error:
        raise NodefallError(f"{what}: the answer is not understood: {error}") from error


def _get(api: KubeApi, path: str) -> bytes:
    response = api.request("GET", path)
    if response.status != 200:
        raise from_response(response, path)
    return response.body


def from_response(response: Response, what: str) -> KubeRejected:
    """The error for an answer that is no success, with what Kubernetes says about it."""
    try:
        message = str(msgspec.json.decode(response.body).get("message", ""))
    except (*DECODE_ERRORS, AttributeError):
        message = ""
    hint = {
        401: "the credentials are not accepted; an expired client certificate or token looks so (kubectl auth whoami)",
        403: "grant it; nodefall rbac prints the least rights",
        404: "is this the address of a Kubernetes API server?",
    }.get(response.status, "")
    return KubeRejected(response.status, f"{what}: {response.status} {message}".rstrip(), hint=hint)
