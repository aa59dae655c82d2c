"""Who may see the live page, and who may stop the run: decided for each request from its headers."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Denial:
    """The status of the answer, and its only line."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of itself. ``token``: of the cookie, the header or the address, "" for none."""

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

    A page of somebody else whose name was made to lead here (DNS rebinding) has its own name. A port may differ, as
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
