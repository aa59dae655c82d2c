"""The proxy for an API server: the one in the kubeconfig, or else the one in the environment by the rules of Go's
net/http.

Source: golang.org/x/net http/httpproxy.
"""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from chaos.core.errors import bad_input
from chaos.core.redaction import register_secret

_SCHEMES = ("http", "https", "socks5", "socks5h")
_HOST = re.compile(r"[\w.:%-]+")
_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Proxy(Struct, frozen=True):
    """A proxy; ``source``: the key or the variable that names it, ``url`` as it is there.

    An IPv6 address in ``host`` has no brackets.
    """

    source: str
    url: str
    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    @property
    def address(self) -> str:
        """Its URL without a password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        return f"proxy {self.address} ({self.source})"


def find_proxy(server: str, proxy_url: str, where: str) -> Proxy | None:
    """The proxy for the URL of a server; ``where`` is the kubeconfig. Raises BadInput."""
    if proxy_url:
        return _parse(proxy_url, "proxy-url", where)
    parts = urlsplit(server)
    name, text = _from_environment(parts.scheme)
    if not text or not _uses_proxy(parts):
        return None
    return _parse(text if "://" in text else f"http://{text}", name, "the environment")


def _from_environment(scheme: str) -> tuple[str, str]:
    names = (f"{scheme.upper()}_PROXY", f"{scheme}_proxy")
    return next(((name, os.environ[name]) for name in names if os.environ.get(name)), ("", ""))


def _parse(text: str, source: str, where: str) -> Proxy:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise bad_input(where, f"its {source} is not a URL", "write it like http://proxy.example:3128") from error
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES or not parts.hostname or not _HOST.fullmatch(parts.hostname):
        what = f"has the scheme {scheme!r}" if "://" in text else "has no scheme"
        why = what if scheme not in _SCHEMES else "names no host"
        raise bad_input(
            where, f"its {source} {why}", f"write it like http://proxy.example:3128; of {', '.join(_SCHEMES)}"
        )
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    register_secret(password)
    if user and not password and scheme.startswith("socks"):
        raise bad_input(
            where, f"its {source} has a user without a password", "SOCKS has none: add it, or remove the user"
        )
    return Proxy(source, text, scheme, parts.hostname, port or _DEFAULT_PORTS[scheme], user, password)


def _uses_proxy(server: SplitResult) -> bool:
    """Whether a proxy of the environment is for this server: loopback and those in NO_PROXY are not."""
    host = (server.hostname or "").lower()
    port = str(server.port or (443 if server.scheme == "https" else 80))
    address = _ip(host)
    if host == "localhost" or (address and address.is_loopback):
        return False
    excluded = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    return not any(_matches(entry.strip().lower(), host, port, address) for entry in excluded.split(","))


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _ip(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _matches(entry: str, host: str, port: str, address: _Address | None) -> bool:
    """Whether an entry of NO_PROXY is for the host: ``*``, an address, a network or a domain, with or without port."""
    if entry in ("", "*"):
        return entry == "*"
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            pass
    name, at_port = entry, ""
    if (entry.startswith("[") and "]:" in entry) or entry.count(":") == 1:
        name, _, at_port = entry.rpartition(":")
        name = name.strip("[]")
    if at_port not in ("", port) or not name:
        return False
    if (excluded := _ip(name)) is not None:
        return excluded == address
    if address is not None:
        return False
    domain = name[1:] if name.startswith("*.") else name
    return host.endswith(domain) if domain.startswith(".") else host == domain or host.endswith(f".{domain}")
