"""Logins to the WS-Management service: Basic over TLS, and NTLM (alone or in SPNEGO), which belongs to a connection."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import spnego
from spnego.exceptions import SpnegoError

PROTOCOL = "application/HTTP-SPNEGO-session-encrypted"
_BOUNDARY = "Encrypted Boundary"
_PART = re.compile(rb"--\s*Encrypted Boundary\r\n")
_USER_FILE = "NTLM_USER_FILE"  # where pyspnego looks for the passwords of those who log in


class SealError(ValueError):
    """An encrypted body that cannot be opened."""


class Account:
    """The only account: the built-in administrator. ``store``: a private file for its password."""

    def __init__(self, user: str, password: str, store: Path) -> None:
        self.user, self._password, self._store = user, password, store
        store.touch(mode=0o600)
        store.write_text(f":{user}:{password}\n", encoding="utf-8")

    def is_basic(self, credentials: str) -> bool:
        """Whether these are the account's credentials, in base64; a domain before the user is ignored."""
        try:
            name, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        is_user = name.rpartition("\\")[2].lower() == self.user.lower()
        return hmac.compare_digest(password.encode(), self._password.encode()) and is_user

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """Let pyspnego know the password for this block. Without await in it, as the variable is the process's."""
        before = os.environ.get(_USER_FILE)
        os.environ[_USER_FILE] = str(self._store)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_USER_FILE]
            else:
                os.environ[_USER_FILE] = before


class NegotiateContext:
    """The login of one connection, and then its message encryption."""

    def __init__(self, account: Account) -> None:
        self._account = account
        options = spnego.NegotiateOptions.use_negotiate | spnego.NegotiateOptions.wrapping_winrm
        with account.offered():
            self._context = spnego.server(protocol="negotiate", options=options)

    @property
    def is_complete(self) -> bool:
        return self._context.complete

    def step(self, token: bytes) -> bytes:
        """Process a token and return the next, b"" for none. Raises SpnegoError."""
        with self._account.offered():
            return self._context.step(token) or b""

    def unseal(self, body: bytes) -> bytes:
        """Decrypt a body of type multipart/encrypted. Raises SealError."""
        parts = [part for part in _PART.split(body) if part]
        if len(parts) != 2:
            raise SealError("not one encrypted part")
        length = re.search(rb"Length=(\d+)", parts[0])
        head, _, sealed = parts[1].partition(b"\tContent-Type: application/octet-stream\r\n")
        sealed = re.sub(rb"--\s*Encrypted Boundary--\r\n\Z", b"", sealed)
        if head or length is None or len(sealed) < 4:
            raise SealError("not an encrypted part")
        size = int(struct.unpack("<i", sealed[:4])[0])
        try:
            plain = self._context.unwrap_winrm(sealed[4 : 4 + size], sealed[4 + size :])
        except SpnegoError as error:
            raise SealError(str(error)) from error
        if len(plain) != int(length[1]):
            raise SealError("the length differs")
        return plain

    def seal(self, plain: bytes) -> bytes:
        """Encrypt a body."""
        sealed = self._context.wrap_winrm(plain)
        head = (
            f"--{_BOUNDARY}\r\n\tContent-Type: {PROTOCOL}\r\n"
            f"\tOriginalContent: type=application/soap+xml;charset=UTF-8;Length={len(plain) + sealed.padding_length}"
            f"\r\n--{_BOUNDARY}\r\n\tContent-Type: application/octet-stream\r\n"
        )
        length = struct.pack("<i", len(sealed.header))
        return head.encode() + length + sealed.header + sealed.data + f"--{_BOUNDARY}--\r\n".encode()


CONTENT_TYPE = f'multipart/encrypted;protocol="{PROTOCOL}";boundary="{_BOUNDARY}"'


class Logins:
    """Contexts by connection; they are dropped once the connection is closed."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self._contexts: dict[int, tuple[asyncio.BaseTransport, NegotiateContext]] = {}

    def of(self, transport: asyncio.BaseTransport) -> NegotiateContext | None:
        """Context of a connection that is logged in."""
        found = self._contexts.get(id(transport))
        return found[1] if found and found[0] is transport and found[1].is_complete else None

    def step(self, transport: asyncio.BaseTransport, token: bytes) -> tuple[NegotiateContext, bytes]:
        """Process a token; after a complete login it begins a new one. Raises SpnegoError."""
        self._contexts = {key: item for key, item in self._contexts.items() if not item[0].is_closing()}
        found = self._contexts.get(id(transport))
        context = found[1] if found and not found[1].is_complete else NegotiateContext(self.account)
        self._contexts[id(transport)] = transport, context
        try:
            return context, context.step(token)
        except SpnegoError:
            del self._contexts[id(transport)]
            raise
