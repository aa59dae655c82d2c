"""What it means when a server gave no answer: one error, told apart by cause, each with a hint."""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import errno
import http.client
import socket
import ssl
from collections.abc import Iterator

from chaos.model.errors import NodefallError

REFUSED, RESET, TIMEOUT, NO_ROUTE, TLS, DNS, OTHER = "refused", "reset", "timeout", "no-route", "tls", "dns", "other"
_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL)
# OpenSSL's X509_V_ERR_* numbers.
_EXPIRED, _NOT_YET_VALID = 10, 9
_UNKNOWN_ISSUER = (18, 19, 20, 21)
_WRONG_NAME = (62, 64)


class KubeUnreachable(NodefallError):
    """No answer came. ``kind`` is the cause; ``sent``: the request may have arrived (and been done)."""

    def __init__(self, kind: str, message: str, *, hint: str = "", sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.sent = sent


class KubeRejected(NodefallError):
    """The server answered with a status that cannot be used."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


def from_exception(error: BaseException, where: str) -> KubeUnreachable:
    """The error of urllib3, ssl or socket as one that a user can act on; ``where`` is the server."""
    from urllib3.exceptions import ProtocolError

    for cause in causes(error):
        found = _from_tls_error(cause, where) if isinstance(cause, ssl.SSLError) else _from_socket_error(cause, where)
        if found:
            return found
    if isinstance(error, ProtocolError):  # it ended too early, for no reason of the socket's
        return KubeUnreachable(RESET, f"{where}: the connection was cut ({error})", sent=True)
    return KubeUnreachable(OTHER, f"{where}: {error}", sent=True)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it wraps (as argument, cause or context), outermost first."""
    pending: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while pending:
        cause = pending.pop(0)
        if cause is None or any(cause is s for s in seen):
            continue
        seen.append(cause)
        yield cause
        pending += [a for a in cause.args if isinstance(a, BaseException)]
        pending += [cause.__cause__, cause.__context__]


def _from_tls_error(cause: ssl.SSLError, where: str) -> KubeUnreachable:
    if isinstance(cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return KubeUnreachable(RESET, f"{where}: the connection was cut", sent=True)
    if not isinstance(cause, ssl.SSLCertVerificationError):
        hint = "is it an https port, and is the client certificate the one it wants?"
        return KubeUnreachable(TLS, f"{where}: TLS failed: {cause.reason or cause}", hint=hint)
    hint = "check certificate-authority in the kubeconfig (of others: kubeletCA, controllerManager.ca in the inventory)"
    if cause.verify_code == _EXPIRED:
        hint = "renew the server's certificate (kubeadm certs renew), or check this machine's clock"
    elif cause.verify_code == _NOT_YET_VALID:
        hint = "check this machine's clock"
    elif cause.verify_code in _WRONG_NAME:
        hint = "use an address that the certificate names, or set tls-server-name in the kubeconfig"
    elif cause.verify_code in _UNKNOWN_ISSUER:
        hint += "; a kubelet without serverTLSBootstrap signs its own and cannot be verified"
    return KubeUnreachable(TLS, f"{where}: its certificate is not accepted: {cause.verify_message}", hint=hint)


def _from_socket_error(cause: BaseException, where: str) -> KubeUnreachable | None:  # noqa: PLR0911 - a table of causes
    from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError, ReadTimeoutError

    if isinstance(cause, (NameResolutionError, socket.gaierror)):
        return KubeUnreachable(DNS, f"{where}: its name cannot be resolved", hint="check the server's name and DNS")
    if isinstance(cause, NewConnectionError):  # its cause says why; it is a ConnectTimeoutError by name only
        return None
    if isinstance(cause, ConnectTimeoutError):
        return KubeUnreachable(TIMEOUT, f"{where}: no connection in time", hint="check the address, VPN and firewall")
    if isinstance(cause, (ReadTimeoutError, TimeoutError)):
        return KubeUnreachable(TIMEOUT, f"{where}: no answer in time", sent=True)
    if isinstance(cause, ConnectionRefusedError):
        return KubeUnreachable(REFUSED, f"{where}: connection refused", hint="is it running, and is the port right?")
    if isinstance(cause, (ConnectionError, http.client.HTTPException)):
        return KubeUnreachable(RESET, f"{where}: the connection was cut", sent=True)
    if isinstance(cause, OSError) and cause.errno in _NO_ROUTE:
        return KubeUnreachable(NO_ROUTE, f"{where}: no route to it", hint="check this machine's network")
    return None
