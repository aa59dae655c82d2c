"""Addresses that the live page is served on."""

from __future__ import annotations

import errno
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from chaos.core.errors import UsageError

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>\d{1,5})")
_WHY = {
    errno.EADDRINUSE: ("the port is in use", "give another port, or 0 for any that is free"),
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
            f"--serve: {text!r} is no address: write PORT or HOST:PORT",
            hint="without an address, put --serve behind the other arguments",
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
