"""A paramiko transport that keeps the server's algorithms and its reason for disconnecting."""

from __future__ import annotations

from typing import Any

import paramiko

from chaos.core.errors import Unreachable
from chaos.core.text import printable

_MAX_SAID = 300  # characters that errors quote
_OPENSSH = "use transport: openssh: it has every algorithm that the ssh of this machine has"


class ClientTransport(paramiko.Transport):
    """A paramiko transport. ``disconnect_text`` is the text of the server's disconnect message, or ""."""

    disconnect_text = ""
    _offered: dict[str, list[str]] | None = None

    @property
    def said(self) -> str:
        """The server's banner and disconnect message, printable; "" if it sent neither."""
        banner: Any = (self.auth_handler and self.auth_handler.banner) or b""  # bytes, whatever the stubs say
        return printable("\n".join(filter(None, (banner.decode("utf-8", "replace"), self.disconnect_text))), _MAX_SAID)

    def incompatibility(self) -> str:
        """The kind of algorithm that has no common choice, with the server's list; "" if that is not the reason."""
        if self._offered is None:
            return ""
        wanted = (
            ("key exchange", "kex_algo_list", self.preferred_kex),
            ("type of host key", "server_key_algo_list", self.preferred_keys),
            ("cipher", "server_encrypt_algo_list", self.preferred_ciphers),
            ("MAC", "server_mac_algo_list", self.preferred_macs),
        )
        for what, key, ours in wanted:
            theirs = [name for name in self._offered[key] if not name.startswith(("ext-info-", "kex-strict-"))]
            if not set(theirs) & set(ours):
                return printable(f"paramiko has no {what} that the host accepts ({', '.join(theirs)})", _MAX_SAID)
        return ""

    def _parse_disconnect(self, m: Any) -> None:
        m.get_int()
        self.disconnect_text = m.get_text()

    def _really_parse_kex_init(self, m: Any, ignore_first_byte: bool = False) -> Any:
        parsed = super()._really_parse_kex_init(m, ignore_first_byte)  # type: ignore[misc]
        if self._offered is None:
            self._offered = {key: list(value) for key, value in parsed.items() if isinstance(value, list)}
        return parsed


def handshake_error(transport: ClientTransport | None, label: str, error: Exception) -> Unreachable:
    """The error for a failed key exchange; it names the algorithms if the two sides have none in common."""
    incompatibility = transport.incompatibility() if transport else ""
    if incompatibility:
        return Unreachable(f"{label} failed the SSH handshake: {incompatibility}", hint=_OPENSSH)
    said = f"{error or 'the connection was closed'}" + (
        f"; it said {transport.said!r}" if transport and transport.said else ""
    )
    return Unreachable(
        f"{label} failed the SSH handshake: {error or 'the connection was closed'}{said}",
        hint="the host may be starting or shutting down; otherwise check port in the inventory and the log of its sshd",
    )
