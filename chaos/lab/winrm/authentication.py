"""Logins to the WS-Management service: Basic, and NTLM (alone or in SPNEGO), which belongs to a connection."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import os
from collections.abc import Iterator
from pathlib import Path

import spnego
from spnego.exceptions import SpnegoError

_USER_FILE = "NTLM_USER_FILE"  # where pyspnego looks for the passwords of those who log in


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


class Logins:
    """Login contexts of NTLM or Negotiate by connection; they are dropped once the connection is closed."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self._contexts: dict[int, tuple[asyncio.BaseTransport, spnego.ContextProxy]] = {}

    def is_complete(self, transport: asyncio.BaseTransport) -> bool:
        """Whether a connection is logged in."""
        found = self._contexts.get(id(transport))
        return found is not None and found[0] is transport and found[1].complete

    def step(self, transport: asyncio.BaseTransport, token: bytes) -> bytes:
        """Process a token and return the next, b"" for none; after a complete login a new one begins.

        Raises SpnegoError.
        """
        self._contexts = {key: item for key, item in self._contexts.items() if not item[0].is_closing()}
        with self.account.offered():
            if id(transport) not in self._contexts or self.is_complete(transport):
                self._contexts[id(transport)] = transport, spnego.server(protocol="negotiate")
            try:
                return self._contexts[id(transport)][1].step(token) or b""
            except SpnegoError:
                del self._contexts[id(transport)]
                raise
