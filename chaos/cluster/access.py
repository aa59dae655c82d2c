"""Address and identity for an API server: a context of the kubeconfig, checked as kubectl checks it, or a pod's own.

Source: k8s.io/client-go tools/clientcmd/client_config.go, rest/config.go (InClusterConfig).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from chaos.cluster.kubeconfig import ClusterEntry, ContextEntry, Kubeconfig, UserEntry, read_kubeconfig
from chaos.cluster.kubeconfig_checks import find_problems
from chaos.cluster.proxies import Proxy, find_proxy
from chaos.core.errors import BadInput, NodefallError, bad_input
from chaos.core.redaction import register_secret
from chaos.core.trusted_files import read_trusted

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_CONFIG = "client.authentication.k8s.io/exec"  # of a cluster's extensions
_MAX_BYTES = 1 << 20  # of a certificate, a bundle or a key


class Pem(Struct, frozen=True):
    """A PEM document: a file that is read when it is needed, or ``data``. ``key``: what names it, for errors."""

    key: str = ""
    path: str = ""
    data: bytes = b""

    def __bool__(self) -> bool:
        return bool(self.path or self.data)

    def read(self) -> bytes:
        """Its bytes, of a file that only trusted users may write. Raises NodefallError."""
        try:
            return read_trusted(Path(self.path), _MAX_BYTES) if self.path else self.data
        except OSError as error:
            raise NodefallError(f"{self.path}: cannot be read: {error.strerror}") from error


class Access(Struct, frozen=True):
    """A cluster and an identity. ``where`` names the kubeconfig; ``notes``: what of it was not understood.

    ``plugin_config``: what the cluster has for its exec plug-in, ``plugin_server``: the server's URL for it.
    """

    server: str
    where: str = ""
    tls_name: str = ""
    verifies: bool = True
    ca: Pem = Pem()
    certificate: Pem = Pem()
    key: Pem = Pem()
    user: UserEntry = UserEntry()
    proxy: Proxy | None = None
    plugin_config: Any = None
    plugin_server: str = ""
    disable_compression: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def is_secure(self) -> bool:
        """Whether it is https: like kubectl, credentials are sent to nothing else."""
        return self.server.startswith("https:")

    @property
    def ca_digest(self) -> str:
        """The SHA-256 of the certificate authority, or of an empty text without one. Raises NodefallError."""
        return hashlib.sha256(self.ca.read() if self.ca else b"").hexdigest()

    @property
    def risks(self) -> tuple[str, ...]:
        """Weaknesses of the connection, and differences from the file, for people."""
        risks = []
        if not self.verifies and self.is_secure:
            risks.append("the API server's certificate is not verified (insecure-skip-tls-verify in the kubeconfig)")
        if self.proxy and self.proxy.source != "proxy-url":
            risks.append(f"the API server is reached through the proxy {self.proxy.host} of the environment")
        return (*risks, *self.notes)


def load_access(kubeconfig: str, context: str | None) -> Access:
    """The access by a context, by default the current one; see :func:`read_kubeconfig` for the files.

    Where there is no kubeconfig, that of the pod that this process runs in. Raises BadInput, NodefallError.
    """
    config = read_kubeconfig(kubeconfig)
    if config.is_empty and not context:
        if (found := _of_this_pod()) is not None:
            return found
        hint = "set cluster.kubeconfig in the inventory, or give --kubeconfig FILE"
        raise bad_input(config.where, "there is no such kubeconfig, or it is empty", hint)
    entry = config.context(context)
    cluster, user = config.cluster(entry.cluster), config.user(entry.user)
    if problems := [*find_problems(entry, cluster, user)]:
        raise BadInput([p for message, hint in problems for p in bad_input(config.where, message, hint).problems])
    access = Access(
        server=_server(config.where, cluster.server),
        where=config.where,
        tls_name=cluster.tls_server_name,
        verifies=not cluster.insecure_skip_tls_verify,
        ca=_pem(config.where, cluster, "certificate-authority"),
        certificate=_pem(config.where, user, "client-certificate"),
        key=_pem(config.where, user, "client-key"),
        user=user,
        proxy=find_proxy(cluster.server, cluster.proxy_url, config.where),
        plugin_config=_plugin_config(cluster),
        plugin_server=_without_query(cluster.server),
        disable_compression=cluster.disable_compression,
        notes=tuple(_notes(config, entry)),
    )
    _refuse_no_credentials(access)
    return access


def _of_this_pod() -> Access | None:
    """The access of the service account, in a pod."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    token, ca = _SERVICE_ACCOUNT / "token", _SERVICE_ACCOUNT / "ca.crt"
    if not host or not port or not token.is_file():
        return None
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server=server,
        where=str(_SERVICE_ACCOUNT),
        ca=Pem("ca.crt", str(ca)) if ca.is_file() else Pem(),
        user=UserEntry(token_file=str(token)),
        proxy=find_proxy(server, "", str(_SERVICE_ACCOUNT)),
    )


def _server(where: str, text: str) -> str:
    """The URL without a slash, a query or a fragment at its end. Raises BadInput."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and text.isprintable()
        valid = valid and not parts.fragment and "%" not in parts.path
    except ValueError:  # a port that is no number
        valid = False
    if not valid or " " in text:
        raise bad_input(where, f"the cluster's server {text.rpartition('@')[2]!r} is not a URL")
    if "@" in parts.netloc:
        raise bad_input(
            where, "the cluster's server has credentials in its URL", "give username and password to the user"
        )
    return f"{parts.scheme}://{parts.netloc}{re.sub('/+', '/', parts.path).rstrip('/')}"


def _without_query(url: str) -> str:
    """The URL as client-go passes it on: a query is dropped if there is a path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}" if len(parts.path) > 1 else url


def _pem(where: str, entry: ClusterEntry | UserEntry, key: str) -> Pem:
    """The document of ``key`` or ``key``-data. Raises BadInput for data that is not base64."""
    name = key.replace("-", "_")
    data = getattr(entry, f"{name}_data")
    if not data:
        return Pem(key, getattr(entry, name))
    try:
        decoded = base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_input(where, f"its {key}-data is not base64") from error
    if key == "client-key":
        register_secret(decoded.decode("utf-8", "replace"))
    return Pem(f"{key}-data", data=decoded)


def _plugin_config(cluster: ClusterEntry) -> Any:
    found = (each.get("extension") for each in cluster.extensions if each.get("name") == _EXEC_CONFIG)
    return next(found, None)


def _notes(config: Kubeconfig, context: ContextEntry) -> Iterator[str]:
    """The keys that nothing reads, in the entries that are used."""
    used = ("cluster", context.cluster), ("user", context.user)
    for (kind, name), keys in config.unknown.items():
        if keys and (not kind or (kind, name) in used):
            where = f"the {kind} {name!r} of the kubeconfig" if kind else f"the kubeconfig {name}"
            yield f"{where} has keys that have no effect: {', '.join(keys)}"


def _refuse_no_credentials(access: Access) -> None:
    user = access.user
    given = (access.certificate, user.token, user.token_file, user.username, user.exec)
    if access.is_secure and not any(given):
        raise NodefallError(
            f"{access.where}: the context's user gives no credentials",
            hint="check that user: kubectl --kubeconfig FILE config view --minify",
        )
