"""Answers of the API server and of kubelets: errors by cause, the JSON of a response, its message and its
Retry-After.
"""

# ruff: noqa: PLC0415 - urllib3 is slow to import

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from chaos.cluster.proxies import Proxy
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.errors import NodefallError, Refused
from chaos.core.ports import Response
from chaos.core.text import printable

REFUSED, RESET, TIMEOUT, NO_ROUTE, TLS, DNS, OTHER = "refused", "reset", "timeout", "no-route", "tls", "dns", "other"
_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL)
# OpenSSL's X509_V_ERR_* numbers.
_EXPIRED, _NOT_YET_VALID = 10, 9
_UNKNOWN_ISSUER = (18, 19, 20, 21)
_WRONG_NAME = (62, 64)
# What a kubelet answers a user who may not use it (pkg/kubelet/server/server.go), in plain text.
_BY_KUBELET = "Forbidden (user="
_LONGEST_TEXT = 300  # bytes of a plain answer
_RIGHTS = "grant the permissions that nodefall rbac prints"


class KubeUnreachable(NodefallError):
    """No response. ``kind`` is the cause; ``sent``: the request may have arrived and had its effect."""

    def __init__(self, kind: str, message: str, *, hint: str = "", sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.sent = sent


class KubeRejected(NodefallError):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


def from_exception(error: BaseException, where: str, proxy: Proxy | None = None) -> KubeUnreachable:
    """The error for one of urllib3, ssl or socket, with a hint; ``where`` is the server, reached through ``proxy``."""
    from urllib3.exceptions import ProtocolError

    if proxy is not None and (found := _from_proxy_error(error, where, proxy)):
        return found
    for cause in causes(error):
        found = _from_tls_error(cause, where) if isinstance(cause, ssl.SSLError) else _from_socket_error(cause, where)
        if found:
            return found
    if isinstance(error, ProtocolError):  # the response ended too early, without a socket error
        return KubeUnreachable(RESET, f"{where}: the connection was cut ({error})", sent=True)
    return KubeUnreachable(OTHER, f"{where}: {error}", sent=True)


def from_response(response: Response, what: str) -> KubeRejected:
    """The error for a response that is no success, with the message of Kubernetes, or of a kubelet behind it."""
    try:
        message = str(msgspec.json.decode(response.body).get("message", ""))
    except (*DECODE_ERRORS, AttributeError):
        message = _plain_text(response.body)
    if message.startswith(_BY_KUBELET):
        hint = "bind the user that the API server has there to ClusterRole system:kubelet-api-admin"
        return KubeRejected(response.status, f"{what}: {response.status} from the kubelet: {message}", hint=hint)
    hint = {
        401: "check the credentials; an expired client certificate or token looks like this (kubectl auth whoami)",
        403: "grant the permission; nodefall rbac prints the minimum",
        404: "check that this is the address of a Kubernetes API server",
    }.get(response.status, "")
    return KubeRejected(response.status, f"{what}: {response.status} {message}".rstrip(), hint=hint)


def _plain_text(body: bytes) -> str:
    """The first line of a body that is no JSON, as a kubelet answers; "" for markup, as of a proxy."""
    line, *_ = body[:_LONGEST_TEXT].decode("utf-8", "replace").strip().splitlines() or [""]
    return "" if line.startswith("<") else "".join(c for c in line if c.isprintable())


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


def _from_proxy_error(error: BaseException, where: str, proxy: Proxy) -> KubeUnreachable | None:
    """The error of the proxy itself, or what it says of the server."""
    from urllib3.exceptions import NewConnectionError, ProxyError

    found = list(causes(error))
    if not any(isinstance(each, (ProxyError, NewConnectionError)) or _is_socks_error(each) for each in found):
        return None
    hint = f"check {proxy.source} and that the proxy runs"
    said = next((str(each) for each in found if "Tunnel connection failed" in str(each) or _is_socks_answer(each)), "")
    if said:
        said = said.partition("Tunnel connection failed: ")[2] or said
        return KubeUnreachable(OTHER, f"{where}: the {proxy} does not connect to it: {printable(said)}", hint=hint)
    for cause in found:
        known = _from_tls_error(cause, str(proxy)) if isinstance(cause, ssl.SSLError) else None
        known = known or _from_socket_error(cause, str(proxy))
        if known:
            return KubeUnreachable(known.kind, f"{where} cannot be reached: {known.message}", hint=hint)
    return KubeUnreachable(OTHER, f"{where} cannot be reached: {proxy}: {printable(str(error))}", hint=hint)


def _is_socks_error(error: BaseException) -> bool:
    return type(error).__module__ == "socks"


def _is_socks_answer(error: BaseException) -> bool:
    """Whether a SOCKS proxy has answered, as that the server refuses the connection."""
    return _is_socks_error(error) and type(error).__name__ != "ProxyConnectionError"


def _from_tls_error(cause: ssl.SSLError, where: str) -> KubeUnreachable:
    if isinstance(cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return KubeUnreachable(RESET, f"{where}: the connection was cut", sent=True)
    if not isinstance(cause, ssl.SSLCertVerificationError):
        hint = "check that the port serves https, and accepts the client certificate"
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
    if isinstance(cause, NewConnectionError):  # its cause is more precise
        return None
    if isinstance(cause, ConnectTimeoutError):
        return KubeUnreachable(
            TIMEOUT, f"{where}: timed out while connecting", hint="check the address, VPN and firewall"
        )
    if isinstance(cause, (ReadTimeoutError, TimeoutError)):
        return KubeUnreachable(TIMEOUT, f"{where}: timed out waiting for a response", sent=True)
    if isinstance(cause, ConnectionRefusedError):
        return KubeUnreachable(REFUSED, f"{where}: connection refused", hint="check the server and its port")
    if isinstance(cause, (ConnectionError, http.client.HTTPException)):
        return KubeUnreachable(RESET, f"{where}: the connection was cut", sent=True)
    if isinstance(cause, OSError) and cause.errno in _NO_ROUTE:
        return KubeUnreachable(NO_ROUTE, f"{where}: no route to it", hint="check this machine's network")
    return None


def decode_body(response: Response) -> Any:
    """The JSON of the body. Raises NodefallError."""
    try:
        return msgspec.json.decode(response.body)
    except DECODE_ERRORS as error:
        raise NodefallError(f"invalid response of the API server: {error}") from error


def status_message(response: Response) -> str:
    """The message of a Status with its causes; the first 200 bytes of any other body."""
    try:
        status = msgspec.json.decode(response.body, type=_Status)
    except DECODE_ERRORS:
        return response.body[:200].decode("utf-8", "replace")
    return " ".join([status.message, *(cause.message for cause in status.details.causes)]).strip()


def check_success(
    response: Response, what: str, hint: str = _RIGHTS, forbidden: Collection[int] = frozenset({403})
) -> None:
    """``what`` has failed if the response is an error. Raises Refused for a status of ``forbidden``, NodefallError."""
    if response.status in forbidden:
        raise Refused(f"{what}: {status_message(response)}", hint=hint)
    if response.status >= 300:
        raise NodefallError(f"{what}: {response.status}: {status_message(response)}")


def decode_success(response: Response, what: str) -> dict[str, Any]:
    """The JSON of an answer that is no error. Raises as :func:`check_success`."""
    check_success(response, what)
    return dict(decode_body(response))


def check_fleet_success(response: Response, what: str) -> None:
    """As :func:`check_success`, in a cluster of a fleet, whose credentials may be wrong, too."""
    check_success(response, what, f"{_RIGHTS} for the fleet", frozenset({401, 403}))


def retry_after(response: Response) -> float | None:
    """The seconds in the Retry-After header, or None."""
    text = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), "")
    return float(text) if text.isdigit() else None


class _Cause(msgspec.Struct):
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)
