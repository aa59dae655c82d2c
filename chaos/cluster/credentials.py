"""The headers and the client certificate of an identity, with client-go's precedence.

Source: k8s.io/client-go transport/round_trippers.go, transport/token_source.go.
"""

from __future__ import annotations

import base64
import string
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from chaos.cluster.access import Access, Pem
from chaos.cluster.exec_plugin import ExecPlugin, PluginCredentials
from chaos.cluster.kubeconfig import UserEntry
from chaos.core.errors import bad_input
from chaos.core.files import missing_file_hint
from chaos.core.labels import FIELD_MANAGER
from chaos.core.redaction import register_secret
from chaos.core.trusted_files import read_trusted

Headers = tuple[tuple[str, str], ...]  # some names occur more than once
_TOKEN_PERIOD = 1.0  # wall seconds between readings of a tokenFile
_MAX_BYTES = 1 << 20  # of a file with a token
_HEADER_CHARACTERS = frozenset(string.ascii_letters + string.digits + "!#$&'*+-.^_`|~")


class Identity(Struct, frozen=True):
    """Who sends a request: its headers, and the client certificate with its key if there is one."""

    headers: Headers
    certificate: Pem
    key: Pem
    plugin: PluginCredentials | None = None


class Credentials:
    """The identity of a kubeconfig's user. Thread-safe."""

    def __init__(self, access: Access) -> None:
        user = access.user
        self._access, self._user = access, user
        has_own = user.token or user.token_file or user.username or (access.certificate and access.key)
        self._plugin = ExecPlugin(user.exec, access) if user.exec and access.is_secure and not has_own else None
        self._token = _TokenFile(access, user) if user.token_file and access.is_secure else None
        self._fixed = (("User-Agent", FIELD_MANAGER), *_impersonation(user))
        for secret in (user.token, user.password):
            register_secret(secret)
        if self._token:
            self._token.read()  # raises, where there is no token at all

    @property
    def needs_plugin(self) -> bool:
        """Whether a program must run before the first request."""
        return self._plugin is not None

    @property
    def impersonates(self) -> str:
        """The user as whom requests are sent; "" for the user's own name."""
        return self._user.impersonate

    def identity(self) -> Identity:
        """The current identity. Runs the exec plug-in if necessary. Raises KubeUnreachable, BadInput."""
        if not self._access.is_secure:
            return Identity(_trimmed(*self._fixed), Pem(), Pem())
        if self._plugin:
            given = self._plugin.credentials()
            pair = Pem("exec", data=given.certificate), Pem("exec", data=given.key)
            return Identity(_trimmed(*self._fixed, *_bearer(given.token)), *pair, given)
        headers = _trimmed(*self._fixed, *self._authorization())
        return Identity(headers, self._access.certificate, self._access.key)

    def renew(self, used: Identity) -> bool:
        """After a 401: whether the exec plug-in has given others than those ``used``. Raises KubeUnreachable."""
        return used.plugin is not None and self._plugin is not None and self._plugin.renew(used.plugin)

    def _authorization(self) -> Headers:
        user = self._user
        if self._token or user.token:
            return _bearer(self._token.read() if self._token else user.token)
        if user.username:
            pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            return (("Authorization", f"Basic {pair}"),)
        return ()


class _TokenFile:
    """A ``tokenFile``, read again as it changes. It is preferred to ``token``, which is for when it cannot be read."""

    def __init__(self, access: Access, user: UserEntry) -> None:
        self._where, self._path, self._fallback = access.where, user.token_file, user.token
        self._lock = threading.Lock()
        self._token, self._read_at = "", float("-inf")

    def read(self) -> str:
        """The token. Raises BadInput if there never was one."""
        with self._lock:
            if time.monotonic() - self._read_at > _TOKEN_PERIOD:
                self._read_at = time.monotonic()
                self._token = self._find() or self._token or self._fallback
            if not self._token:
                path = Path(self._path)
                if path.is_file():
                    raise bad_input(self._where, f"its tokenFile {path} has no token, or cannot be read")
                raise bad_input(self._where, f"its tokenFile {path} does not exist", missing_file_hint(path))
            return self._token

    def _find(self) -> str:
        try:
            token = read_trusted(Path(self._path), _MAX_BYTES).decode("utf-8").strip()
        except (OSError, ValueError):  # ValueError: bytes that are no UTF-8, a path with a NUL
            return ""
        register_secret(token)
        if any(character.isspace() or not character.isprintable() for character in token):
            raise bad_input(self._where, f"its tokenFile {self._path} has more than a token in it")
        return token


def _trimmed(*headers: tuple[str, str]) -> Headers:
    """The headers as Go sends them: without spaces around a value."""
    return tuple((name, value.strip(" \t")) for name, value in headers)


def _bearer(token: str) -> Headers:
    return (("Authorization", f"Bearer {token}"),) if token else ()


def _impersonation(user: UserEntry) -> Iterator[tuple[str, str]]:
    if not user.impersonate:
        return
    yield "Impersonate-User", user.impersonate
    if user.impersonate_uid:
        yield "Impersonate-Uid", user.impersonate_uid
    for group in user.impersonate_groups:
        yield "Impersonate-Group", group
    for name, values in user.impersonate_extra.items():
        for value in values:
            yield f"Impersonate-Extra-{_escape(name)}", value


def _escape(name: str) -> str:
    """A key of as-user-extra as a part of a header's name."""
    return "".join(c if c in _HEADER_CHARACTERS else "".join(f"%{byte:02X}" for byte in c.encode()) for c in name)
