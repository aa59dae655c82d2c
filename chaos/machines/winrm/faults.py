"""Errors for WS-Management failures: what failed, whether the request certainly had no effect, and what to do."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import ParseError

import requests
import urllib3.exceptions
from spnego.exceptions import SpnegoError
from winrm.exceptions import (
    AuthenticationError,
    WinRMError,
    WinRMOperationTimeoutError,
    WinRMTransportError,
    WSManFaultError,
)
from winrm.transport import HAVE_CREDSSP

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.machines.winrm.connection import ConnectionFailed, LoginInterrupted
from chaos.machines.winrm.endpoint import Endpoint, RejectedLogin

try:  # the extra credssp
    from requests_credssp.exceptions import AuthenticationException, NTStatusException
except ImportError:
    _CREDSSP_ERRORS: tuple[type[Exception], ...] = ()
else:
    _CREDSSP_ERRORS = (AuthenticationException, NTStatusException)

OPERATIONS_QUOTA = 2150859174
GONE = 2150858843  # a shell or a command that no longer exists
ABORTED = 995  # as the shell was closed meanwhile
_MAX_TEXT = 300  # characters of a host's text in a message
_MUST_UNDERSTAND = "MustUnderstand"
# Of pywinrm, in a module that needs pykerberos.
_KERBEROS_ERRORS = ("KerberosExchangeError", "MutualAuthenticationError")
# 401, or an answer that was no challenge (PermissionError of requests-ntlm): before the message was accepted.
_REJECTIONS: tuple[type[Exception], ...] = (AuthenticationError, PermissionError, *_CREDSSP_ERRORS)
_RESTART = "the host may be starting or shutting down; try again"


@dataclass(frozen=True, slots=True)
class FaultMeaning:
    """``had_no_effect``: a request with this fault was certainly not carried out."""

    sentence: str
    hint: str
    had_no_effect: bool = True


_SHELLS = "close shells of this user there, or raise MaxShellsPerUser"
_QUOTA = "see the quotas with `winrm get winrm/config` on the host"
_REPORT = "the host does not accept nodefall's message: report it with the host's version"
_PLUGIN_QUOTAS = {
    code: FaultMeaning("a quota of its shell plug-in is exhausted", _QUOTA) for code in range(2150859236, 2150859243)
}
MEANINGS: dict[int, FaultMeaning] = {
    2150859173: FaultMeaning("the user has too many shells (MaxShellsPerUser)", _SHELLS),
    OPERATIONS_QUOTA: FaultMeaning(
        "the user has too many operations (MaxConcurrentOperationsPerUser)",
        "close other sessions of this user, or raise the quota",
    ),
    2150859175: FaultMeaning("the quota of the user is exhausted", _QUOTA),
    2150859176: FaultMeaning("the quota of the system is exhausted", _QUOTA),
    2150859179: FaultMeaning("too many users have shells (MaxConcurrentUsers)", _QUOTA),
    **_PLUGIN_QUOTAS,
    2147942402: FaultMeaning("the program does not exist there", "correct the path of the program"),
    2147942606: FaultMeaning("the command line is too long", "give the input on stdin"),
    87: FaultMeaning("the request is invalid", _REPORT),
    2150858767: FaultMeaning("a header of the request is invalid", _REPORT),
    2150858817: FaultMeaning("the request does not follow the schema", _REPORT),
    # The selector of the request names nothing: no shell could have run the command.
    GONE: FaultMeaning("the shell no longer exists", _RESTART),
    2150859180: FaultMeaning(
        "remote shells are switched off there (AllowRemoteShellAccess)", "enable them on the host", False
    ),
    5: FaultMeaning(
        "the user is authenticated, but not authorized", "the user must be an administrator of the host", False
    ),
    2147942405: FaultMeaning(
        "the user is authenticated, but not authorized", "the user must be an administrator of the host", False
    ),
    170: FaultMeaning("the host is busy", _RESTART, False),
    ABORTED: FaultMeaning("the operation was aborted", _RESTART, False),
    2147943418: FaultMeaning("the profile of the user is being unloaded", _RESTART, False),
}


class RequestFailure(Exception):
    """A request without a usable answer. ``error`` is for people, and for callers if nothing was sent.

    ``had_no_effect``: it was certainly not carried out. ``breaks_connection``: nothing more can be sent on it.
    ``code`` is the fault's code, 0 without one.
    """

    def __init__(
        self, error: NodefallError, *, had_no_effect: bool = False, breaks_connection: bool = True, code: int = 0
    ) -> None:
        super().__init__(error.message)
        self.error, self.had_no_effect = error, had_no_effect
        self.breaks_connection, self.code = breaks_connection, code


class UnexpectedAnswer(Exception):
    """An answer that is not a SOAP envelope, or does not belong to the request."""


def translate(error: Exception, endpoint: Endpoint, operation: str) -> RequestFailure:
    """Translate an exception of pywinrm, requests or their dependencies. The result has no secret and no body in it."""
    label = endpoint.label
    match error:
        case WSManFaultError():
            return _of_fault(error, label, operation)
        case WinRMOperationTimeoutError():
            failure = Unreachable(f"{label} did not finish {operation} in time", hint=_RESTART)
            return RequestFailure(failure, breaks_connection=False)
    had_no_effect = isinstance(error, (ConnectionFailed, *_REJECTIONS))
    return RequestFailure(_describe(error, endpoint, operation), had_no_effect=had_no_effect)


def _describe(error: Exception, endpoint: Endpoint, operation: str) -> NodefallError:
    if isinstance(error, _REJECTIONS):
        return _login_error(endpoint)
    if isinstance(error, SpnegoError) or type(error).__name__ in _KERBEROS_ERRORS:
        message = f"login or encryption by {endpoint.auth} failed on {endpoint.label}: {_clean(str(error))}"
        return Unreachable(message, hint=_hint_of_login(endpoint))
    match error:
        case ConnectionFailed() | requests.RequestException() | urllib3.exceptions.HTTPError() | OSError():
            return _of_network(error, endpoint.label, operation)
        case WinRMTransportError():
            return _http_error(error, endpoint.label, operation)
        case WinRMError():
            message = f"{endpoint.label} cannot be used: {_clean(str(error))}"
            is_absent = endpoint.auth == "credssp" and not HAVE_CREDSSP
            return Unreachable(message, hint="install nodefall[credssp]" if is_absent else _hint_of_login(endpoint))
    return _unexpected(error, endpoint.label, operation)


def _of_fault(fault: WSManFaultError, label: str, operation: str) -> RequestFailure:
    code = int(fault.wsman_fault_code or fault.wmierror_code or 0)
    meaning = MEANINGS.get(code, FaultMeaning("", "look up the code of the fault", False))
    if not code and _MUST_UNDERSTAND in f"{fault.fault_code}":
        meaning = FaultMeaning("it does not understand a header of the request", _REPORT)
    number = f" {code}" if code else f" {_clean(fault.fault_subcode or fault.fault_code or 'without a code')}"
    sentence = f"{meaning.sentence}: " if meaning.sentence else ""
    message = f"{label} answered {operation} with fault{number}: {sentence}{_clean(fault.reason)}"
    return RequestFailure(
        Unreachable(message, hint=meaning.hint),
        had_no_effect=meaning.had_no_effect,
        breaks_connection=False,
        code=code,
    )


def _login_error(endpoint: Endpoint) -> RejectedLogin:
    return RejectedLogin(
        f"{endpoint.label} rejected the login by {endpoint.auth} (401): the user or password is wrong, or messages must"
        f" be encrypted, or {endpoint.auth} is switched off there",
        hint=_hint_of_login(endpoint),
    )


def _hint_of_login(endpoint: Endpoint) -> str:
    hints = {
        "kerberos": "run `kinit` for the user, and install nodefall[kerberos]",
        "certificate": "map the certificate to a local account, and enable Certificate in winrm/config/service/auth",
    }
    return hints.get(
        endpoint.auth,
        "check user and password; use https; `winrm get winrm/config/service/auth` lists what is enabled; local"
        " accounts other than Administrator need LocalAccountTokenFilterPolicy = 1",
    )


def _http_error(error: WinRMTransportError, label: str, operation: str) -> NodefallError:
    hints = {
        400: "a message that was encrypted for another connection; try again",
        404: "check port in the inventory: this is not a WinRM service",
        503: "the WinRM service does not run there, or is starting",
    }
    message = f"{label} answered {operation} with HTTP status {error.code} and no fault"
    return Unreachable(message, hint=hints.get(error.code, "check port in the inventory, and the WinRM service there"))


def _of_network(error: Exception, label: str, operation: str) -> NodefallError:
    causes = list(_causes(error))
    if failed := next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None):
        return _untrusted(failed, label)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        message = f"{label} failed the TLS handshake or broke it: {_reason(causes)}"
        return Unreachable(message, hint="check port in the inventory: 5986 is https, 5985 http")
    if isinstance(error, ConnectionFailed) and not isinstance(error, LoginInterrupted):
        return Unreachable(
            f"{label} cannot be reached: {_reason(causes)}",
            hint="check address and port in the inventory, the WinRM listener of the host and its firewall",
        )
    if isinstance(error, requests.TooManyRedirects):
        message = f"{label} answered {operation} with a redirection"
        return Unreachable(message, hint="check port in the inventory: this is not a WinRM service")
    if isinstance(error, requests.ReadTimeout):
        return Unreachable(f"{label} did not answer {operation}", hint=_RESTART)
    when = f"the login for {operation}" if isinstance(error, LoginInterrupted) else operation
    return Unreachable(f"the connection to {label} was lost during {when}: {_reason(causes)}", hint=_RESTART)


def _untrusted(error: ssl.SSLCertVerificationError, label: str) -> NodefallError:
    hints = {
        10: "renew the certificate of the WinRM listener",
        62: "set hostname in options to the name in the certificate",  # X509_V_ERR_HOSTNAME_MISMATCH
        64: "set hostname in options to the name in the certificate",  # X509_V_ERR_IP_ADDRESS_MISMATCH
    }
    return Refused(
        f"{label} has a certificate that cannot be trusted: {error.verify_message}",
        hint=hints.get(error.verify_code, "name its authority as caFile, or its SHA-256 as fingerprint, in options"),
    )


def _unexpected(error: Exception, label: str, operation: str) -> NodefallError:
    what = {
        ParseError: "it is not well-formed XML",
        UnicodeDecodeError: "it is not UTF-8",
        StopIteration: "an element is missing",
        AssertionError: "it is the answer to another message",
        KeyError: "a header or attribute is missing",
    }
    why = str(error) if isinstance(error, UnexpectedAnswer) else what.get(type(error), type(error).__name__)
    return Unreachable(
        f"{label} sent an answer to {operation} that cannot be parsed: {why}",
        hint="check port in the inventory: is this the WinRM service, without a proxy before it?",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, which requests and urllib3 hold in arguments and attributes."""
    pending: list[Any] = [error]
    seen: set[int] = set()
    while pending:
        each = pending.pop(0)
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            pending += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]


def _reason(causes: list[BaseException]) -> str:
    """The operating system's error text, otherwise the name of the innermost error."""
    texts = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    if texts:
        return texts[-1]
    closed = "it closed the connection"
    names = {"ConnectTimeoutError": "no answer in time", "RemoteDisconnected": closed, "LoginInterrupted": closed}
    return next((names[type(c).__name__] for c in causes if type(c).__name__ in names), type(causes[-1]).__name__)


def _clean(text: str) -> str:
    """A host's text on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_MAX_TEXT]
