"""Who may see the live page and stop the run, decided by a request's headers; and where the page is served."""

from __future__ import annotations

import errno
import hmac
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from chaos.core.errors import UsageError

SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Denial:
    """The status of the answer, and its only line."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of itself. ``token``: of the path or the header, "" for none."""

    method: str
    host: str
    origin: str | None
    token: str


@dataclass(frozen=True, slots=True)
class Access:
    """The token of this server, and the names by which it is known, beside its IP addresses."""

    token: str
    names: frozenset[str]

    def denial(self, claim: Claim) -> Denial | None:
        """Why a request is denied, None if it is not."""
        if not is_known_host(claim.host, self.names):
            return Denial(421, "unknown host name: open the address that nodefall printed")
        if not hmac.compare_digest(claim.token.encode("utf-8", "surrogateescape"), self.token.encode()):
            return Denial(401, "open the address that nodefall printed, with its token")
        if claim.method not in SAFE and not is_own_origin(claim.origin, claim.host):
            return Denial(403, "only the page itself may do this")
        return None


def is_known_host(host: str, names: Collection[str]) -> bool:
    """Whether a Host header names this server: an IP address, localhost or one of ``names``, with any port.

    A page of someone else whose name was made to lead here (DNS rebinding) has its own name. A port may differ, as
    where SSH forwards one.
    """
    name = _host_name(host)
    if name is None:
        return False
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return name == "localhost" or name in names
    return True


def is_own_origin(origin: str | None, host: str) -> bool:
    """Whether an Origin header is that of a page of the server that ``host`` names."""
    if not origin:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    is_plain = not (parts.path or parts.query or parts.fragment)
    return is_plain and parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _host_name(host: str) -> str | None:
    """The host without its port, None for what is not a host."""
    try:
        parts = urlsplit(f"//{host}")
        has_port = parts.port is None or parts.port >= 0
    except ValueError:
        return None
    is_host = has_port and parts.netloc == host and "@" not in host
    return parts.hostname if is_host else None


LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>\d{1,5})")
_WHY = {
    errno.EADDRINUSE: ("the port is in use", "choose another port, or 0 for any free port"),
    errno.EADDRNOTAVAIL: ("this machine does not have the address", "give another one, or 0.0.0.0 for all"),
    errno.EACCES: ("ports below 1024 need root", "give a port from 1024 on"),
}


@dataclass(frozen=True, slots=True)
class Address:
    """A host name or an IP address, and a port; port 0 is any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """``PORT``, ``HOST:PORT`` or ``[IPV6]:PORT``; without a host on loopback. Raises UsageError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise UsageError(
            f"--serve: {text!r} is not an address: write PORT or HOST:PORT",
            hint="to use --serve without an address, put it after the other arguments",
        )
    return Address((found["host"] or LOOPBACK).strip("[]"), int(found["port"]))


def listen(address: Address) -> socket.socket:
    """A socket that listens there. Raises UsageError that says why it cannot."""
    try:
        family, *_, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family, backlog=32)
    except socket.gaierror as error:
        raise UsageError(
            f"cannot serve on {address}: the host name is unknown", hint="give an IP address of this machine"
        ) from error
    except OSError as error:
        why, hint = _WHY.get(error.errno or 0, (error.strerror or str(error), "give another address"))
        raise UsageError(f"cannot serve on {address}: {why}", hint=hint) from error


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine reaches the socket."""
    return ip_address(bound.getsockname()[0]).is_loopback


def shown_host(address: Address, bound: socket.socket) -> str:
    """The host as others write it in a URL: the name of the machine for a socket on all its addresses."""
    host = socket.gethostname() if ip_address(bound.getsockname()[0]).is_unspecified else address.host
    return f"[{host}]" if ":" in host else host
