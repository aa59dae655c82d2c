"""Pools of connections: whom they trust, which certificate they present, and the proxy that they go through."""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import base64
import os
import re
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from chaos.cluster.access import Access, Pem
from chaos.cluster.connections import end_in_time
from chaos.cluster.credentials import Identity
from chaos.cluster.proxies import Proxy
from chaos.cluster.tls_in_tls import TlsInTls
from chaos.core.errors import BadInput, NodefallError, bad_input

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_FILES_PERIOD = 1.0  # wall seconds between looks at whether the files have changed
_POOL_SIZE = 32  # connections, for watches, scrapes and writes together
_SERVERS = 256  # of which connections are kept: kubelets
# As client-go: an idle watch is probed after 30 s, and lost after three probes.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 3))


class Pool(Struct, frozen=True):
    """urllib3's manager, and the proxy that it uses."""

    manager: Any
    proxy: Proxy | None = None


class Pools:
    """Connections with one client certificate, to the API server, to kubelets and to components."""

    def __init__(self, access: Access, identity: Identity, kubelet_ca: str | None, component_ca: str | None) -> None:
        self._files = [pem for pem in (access.ca, identity.certificate, identity.key) if pem.path]
        self._certificate = identity.certificate, identity.key
        self._stamp, self._checked_at = self._read_stamp(), time.monotonic()
        self.access, self.identity = access, identity
        self.api = api_pool(access, identity)
        self.kubelet = direct_pool(access, identity, Pem("kubeletCA", kubelet_ca or ""))
        self.component = direct_pool(access, identity, Pem("controllerManager.ca", component_ca or ""))
        self.pinned: dict[str, Pool] = {}  # by the address of a kubelet with a self-signed certificate

    def is_outdated(self, identity: Identity) -> bool:
        """Whether the certificate has changed, also in the files."""
        if self._certificate != (identity.certificate, identity.key):
            return True
        if time.monotonic() - self._checked_at < _FILES_PERIOD:
            return False
        self._checked_at = time.monotonic()
        return self._read_stamp() != self._stamp

    def _read_stamp(self) -> list[tuple[int, ...]]:
        """A stamp that changes with the files. A file that is missing while it is replaced contributes nothing."""
        found: list[tuple[int, ...]] = []
        for pem in self._files:
            try:
                status = os.stat(pem.path)
            except OSError:
                found.append(())
            else:
                found.append((status.st_mtime_ns, status.st_ino, status.st_size))
        return found

    def close(self) -> None:
        """Close the connections that nothing uses at the moment."""
        for pool in (self.api, self.kubelet, self.component, *self.pinned.values()):
            pool.manager.clear()


def api_pool(access: Access, identity: Identity) -> Pool:
    """For the API server. Raises BadInput for certificates that cannot be used."""
    from urllib3 import ProxyManager

    options: dict[str, Any] = {
        "maxsize": _POOL_SIZE,
        "socket_options": _socket_options(),
        "ssl_context": _context(access, access.ca, identity, verifies=access.verifies),
        "server_hostname": access.tls_name or None,
    }
    if not access.verifies:
        options["assert_hostname"] = False
    proxy = access.proxy
    if proxy is None:
        return Pool(end_in_time(_official_manager(access, options), remembers=True))
    if proxy.scheme.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager

        # Go leaves the resolving of names to the proxy, for both schemes.
        url = f"socks5h{proxy.address.removeprefix(proxy.scheme)}"
        socks = SOCKSProxyManager(url, proxy.user or None, proxy.password or None, **options)
        return Pool(end_in_time(socks, remembers=True), proxy)
    login = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    headers = {"Proxy-Authorization": f"Basic {login}"} if proxy.user or proxy.password else None
    trust = _context(access, access.ca, None, verifies=access.verifies, with_system=True)
    manager = ProxyManager(proxy.address, proxy_headers=headers, proxy_ssl_context=trust, **options)
    return Pool(end_in_time(manager, remembers=True), proxy)


def _official_manager(access: Access, options: dict[str, Any]) -> Any:
    """The connections of Kubernetes' official client, with ``options`` instead of what it reads from files."""
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.rest import RESTClientObject

    configuration = Configuration(host=access.server)
    configuration.verify_ssl, configuration.proxy = access.verifies, None  # the proxy of the environment is not ours
    manager = RESTClientObject(configuration).pool_manager
    manager.connection_pool_kw |= options
    return manager


def direct_pool(access: Access, identity: Identity, ca: Pem, **options: Any) -> Pool:
    """For kubelets and control plane components, whose certificates ``ca`` or the cluster's CA has signed."""
    from urllib3 import PoolManager

    context = _context(access, ca or access.ca, identity, verifies=True)
    manager = PoolManager(num_pools=_SERVERS, maxsize=2, ssl_context=context, **options)
    return Pool(end_in_time(manager, remembers=False))


def open_socket(pool: Pool, url: str, timeout: float) -> Any:
    """A connection to the server of ``url``: proxy and TLS are done. Raises urllib3's errors and OSError."""
    from urllib3 import Timeout
    from urllib3.util.ssltransport import SSLTransport

    parts = urlsplit(url)
    connections = pool.manager.connection_from_host(parts.hostname, parts.port, parts.scheme)
    connections.timeout = Timeout(connect=timeout)
    connection = connections._new_conn()
    if (proxy := connections.proxy) is not None:
        host, port, headers = connections._tunnel_host, connections.port, connections.proxy_headers
        connection.set_tunnel(host, port, headers, "https" if proxy.scheme == "https" else "http")
    connection.connect()
    return TlsInTls(connection.sock) if isinstance(connection.sock, SSLTransport) else connection.sock


def _socket_options() -> list[tuple[int, int, int]]:
    from urllib3.connection import HTTPConnection

    options = [*HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    known = [(getattr(socket, name, None), value) for name, value in _KEEP_ALIVE]
    return [*options, *((socket.IPPROTO_TCP, name, value) for name, value in known if name is not None)]


def _context(
    access: Access, ca: Pem, identity: Identity | None, *, verifies: bool, with_system: bool = False
) -> ssl.SSLContext:
    """Works like crypto/tls: every certificate in the CA file is trusted, even if it is not self-signed. Common names
    do not count.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False
    if not verifies:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if ca:
        try:
            _trust(context, ca.read().decode("ascii", "ignore"))
        except BadInput:  # others may write the file
            raise
        except (OSError, ValueError, NodefallError) as error:  # ssl.SSLError is an OSError
            raise bad_input(access.where, f"its {ca.key} {ca.path}".rstrip() + " has no certificate in PEM") from error
    if with_system or not ca:
        context.load_default_certs()
    if identity and identity.certificate:
        _load_certificate(context, access, identity)
    return context


def _trust(context: ssl.SSLContext, bundle: str) -> None:
    """Like crypto/tls, every certificate that can be read; others are left out. Raises ValueError for none."""
    for certificate in _CERTIFICATE.findall(bundle):
        with suppress(ssl.SSLError):
            context.load_verify_locations(cadata=certificate)
    if not context.cert_store_stats()["x509"]:
        raise ValueError


def _load_certificate(context: ssl.SSLContext, access: Access, identity: Identity) -> None:
    names = " and ".join(f"{pem.key} {pem.path}".rstrip() for pem in (identity.certificate, identity.key))
    try:
        with _files(identity.certificate, identity.key) as (certificate, key):
            context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or "unreadable"
        message = f"its {names} cannot be used: {reason.lower().replace('_', ' ')}"
        hint = "they must be PEM, belong together, and the key must have no passphrase"
        raise bad_input(access.where, message, hint) from error


def _no_password() -> str:
    """Instead of a question on the terminal. Raises ValueError."""
    raise ValueError


@contextmanager
def _files(*documents: Pem) -> Iterator[list[str]]:
    """Paths of the documents, as ssl reads keys from files only; of copies in memory, of what was checked."""
    with ExitStack() as stack:
        paths = []
        for each in documents:
            data = each.read()
            if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
                file: Any = stack.enter_context(os.fdopen(os.memfd_create("nodefall"), "wb"))
                paths.append(f"/proc/self/fd/{file.fileno()}")
            else:
                file = stack.enter_context(tempfile.NamedTemporaryFile())
                paths.append(file.name)
            file.write(data)
            file.flush()
        yield paths
