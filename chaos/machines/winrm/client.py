"""The operations of WS-Management on one host: pywinrm's Protocol with verified connections and checked answers.

The quotas of the service are read by a request for ``winrm/config``, which pywinrm does not support.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid4
from xml.etree import ElementTree

from winrm.exceptions import WinRMError, WinRMOperationTimeoutError
from winrm.protocol import Protocol

from chaos.core.errors import NodefallError
from chaos.machines.windows_command_line import CommandLine
from chaos.machines.winrm.connection import VerifyCertificate, VerifyingAdapter
from chaos.machines.winrm.endpoint import Endpoint, LoginPause, RejectedLogin
from chaos.machines.winrm.faults import RequestFailure, UnexpectedAnswer, translate

_CONFIG = "http://schemas.microsoft.com/wbem/wsman/1/config"
_ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
# pywinrm has no Get. The elements that Windows requires; it accepts any address in To.
_REQUEST = (
    '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"'
    f' xmlns:a="{_ADDRESSING}" xmlns:w="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"><s:Header>'
    "<a:To>http://windows-host:5985/wsman</a:To>"
    f'<a:ReplyTo><a:Address s:mustUnderstand="true">{_ADDRESSING}/role/anonymous</a:Address></a:ReplyTo>'
    '<a:Action s:mustUnderstand="true">http://schemas.xmlsoap.org/ws/2004/09/transfer/Get</a:Action>'
    '<w:MaxEnvelopeSize s:mustUnderstand="true">153600</w:MaxEnvelopeSize><a:MessageID>uuid:{id}</a:MessageID>'
    "<w:OperationTimeout>PT{seconds}S</w:OperationTimeout>"
    f'<w:ResourceURI s:mustUnderstand="true">{_CONFIG}</w:ResourceURI></s:Header><s:Body/></s:Envelope>'
)
_QUOTAS = {
    "MaxShellsPerUser": "Winrs",
    "MaxProcessesPerShell": "Winrs",
    "MaxConcurrentOperationsPerUser": "Service",
}
_T = TypeVar("_T")
IDLE_TIMEOUT = "PT180S"  # after which the host deletes a shell that was left behind
UTF_8 = 65001  # code page
OPERATION_TIMEOUT = 20  # seconds in which the host must answer, at most
NETWORK_DELAY = 5  # seconds after which an answer is overdue, as MS-WSMV 3.2.4.1 has it
_SOAP = "{http://www.w3.org/2003/05/soap-envelope}"
_RELATES_TO = "{http://schemas.xmlsoap.org/ws/2004/08/addressing}RelatesTo"
_SHELL = "{http://schemas.microsoft.com/wbem/wsman/1/windows/shell}"
_MESSAGE_ID = re.compile(r"<a:MessageID>uuid:([0-9a-fA-F-]{36})</a:MessageID>")
_CREATE = ">http://schemas.xmlsoap.org/ws/2004/09/transfer/Create<"
_RECEIVE = ">http://schemas.microsoft.com/wbem/wsman/1/windows/shell/Receive<"
_EXIT_CODE = re.compile(r"[+-]?\d{1,10}")


def request_quotas(protocol: Protocol) -> dict[str, int]:
    """Request the quotas by their names in ``winrm/config``. Raises the protocol's errors and UnexpectedAnswer."""
    message = _REQUEST.format(id=uuid4(), seconds=int(protocol.operation_timeout_sec))
    return parse_quotas(protocol.send_message(message))


def parse_quotas(answer: bytes) -> dict[str, int]:
    """Parse the quotas in the answer. Raises UnexpectedAnswer if one is missing or is not a number."""
    root = ElementTree.fromstring(answer)  # noqa: S314 - from an authenticated host
    return {name: _number(root, section, name) for name, section in _QUOTAS.items()}


def _number(root: ElementTree.Element, section: str, name: str) -> int:
    text = root.findtext(f".//{{{_CONFIG}}}Config/{{{_CONFIG}}}{section}/{{{_CONFIG}}}{name}", "")
    if not (text.isascii() and text.isdigit()):
        raise UnexpectedAnswer(f"it has no {name}")
    return int(text)


@dataclass(frozen=True, slots=True)
class Received:
    """Output since the last answer; ``exit`` once the command has ended, as an unsigned number of 32 bits."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit: int | None = None


class CheckedProtocol(Protocol):
    """Raises UnexpectedAnswer for answers that pywinrm would ignore, after which it would poll forever.

    ``client_address``: where the host saw the last Create come from, "" where its answer did not say.
    """

    client_address = ""

    def send_message(self, message: str) -> bytes:
        answer = super().send_message(message)
        root = ElementTree.fromstring(answer)  # noqa: S314 - from an authenticated host; expat limits entities
        _check(root, message)
        if _CREATE in message:
            self.client_address = root.findtext(f"{_SOAP}Body/{_SHELL}Shell/{_SHELL}ClientIP", "").strip()
        return answer


def _check(root: ElementTree.Element, message: str) -> None:
    if root.tag != f"{_SOAP}Envelope" or root.find(f"{_SOAP}Body") is None:
        raise UnexpectedAnswer("it is not a SOAP envelope")
    sent, related = _MESSAGE_ID.search(message), root.find(f"{_SOAP}Header/{_RELATES_TO}")
    if related is None or sent is None or _uuid(related.text) != _uuid(sent[1]):
        raise UnexpectedAnswer("it is the answer to another message")
    state = root.find(f".//{_SHELL}CommandState")
    if _RECEIVE in message and state is None:
        raise UnexpectedAnswer("it does not say whether the command runs")
    if state is not None and state.get("State", "").endswith("/Done"):
        code = state.find(f"{_SHELL}ExitCode")
        if code is None or not _EXIT_CODE.fullmatch((code.text or "").strip()):
            raise UnexpectedAnswer("the command has ended without an exit code")


def _known(identifier: str | None) -> str:
    if not identifier:
        raise UnexpectedAnswer("it has no identifier")
    return identifier


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID((text or "").removeprefix("uuid:"))
    except ValueError:
        return None


class WinRmClient:
    """Operations on one host, of one thread; each takes the seconds that are left. They raise RequestFailure.

    ``verify`` gets the SHA-256 of the host's certificate before anything is sent on a connection; it may raise Refused.
    The connection is opened by the first operation, unless ``logins`` pause. After a failure that ``breaks_connection``
    make another client: a session of NTLM, and messages that are encrypted, belong to the former connection.
    """

    def __init__(self, endpoint: Endpoint, verify: VerifyCertificate, logins: LoginPause) -> None:
        self._endpoint, self._verify, self._logins = endpoint, verify, logins
        self._protocol: CheckedProtocol | None = None

    def create_shell(self, seconds: float) -> str:
        """Open a shell; its ID."""
        return self._call(
            "Create",
            seconds,
            lambda protocol: _known(protocol.open_shell(noprofile=True, codepage=UTF_8, idle_timeout=IDLE_TIMEOUT)),
        )

    @property
    def client_address(self) -> str:
        """Where the host sees this connection come from, "" while no shell was opened or where it does not say."""
        return self._protocol.client_address if self._protocol else ""

    def read_quotas(self, seconds: float) -> dict[str, int]:
        """Quotas of the service by their names in ``winrm/config``; the user must be an administrator."""
        return self._call("Get", seconds, request_quotas)

    def start(self, shell: str, line: CommandLine, has_stdin: bool, seconds: float) -> str:
        """Start a command without cmd.exe; its ID."""
        return self._call(
            "Command",
            seconds,
            lambda protocol: _known(
                protocol.run_command(
                    shell,
                    line.program,
                    [line.arguments] if line.arguments else [],
                    console_mode_stdin=not has_stdin,
                    skip_cmd_shell=True,
                )
            ),
        )

    def send(self, shell: str, command: str, data: bytes, is_last: bool, seconds: float) -> None:
        """Write to the command's standard input, and close it with the last piece."""
        self._call("Send", seconds, lambda protocol: protocol.send_command_input(shell, command, data, end=is_last))

    def receive(self, shell: str, command: str, seconds: float) -> Received:
        """Wait for output; empty if there is none in that time."""

        def poll(protocol: CheckedProtocol) -> Received:
            try:
                stdout, stderr, code, is_done = protocol.get_command_output_raw(shell, command)
            except WinRMOperationTimeoutError:
                return Received()
            return Received(stdout, stderr, code & 0xFFFFFFFF if is_done else None)

        return self._call("Receive", seconds, poll)

    def end_command(self, shell: str, command: str, seconds: float) -> None:
        """The final Signal, which every command needs."""
        self._call("Signal", seconds, lambda protocol: protocol.cleanup_command(shell, command))

    def delete_shell(self, shell: str, seconds: float) -> None:
        """Delete a shell, and end the commands in it."""
        self._call("Delete", seconds, lambda protocol: protocol.close_shell(shell, close_session=False))

    def close(self) -> None:
        """Close the connection; shells and commands on the host stay."""
        if self._protocol is not None:
            self._protocol.transport.close_session()

    def _call(self, operation: str, seconds: float, do: Callable[[CheckedProtocol], _T]) -> _T:
        protocol = self._protocol = self._protocol or self._opened(operation)
        try:
            whole = max(1, min(OPERATION_TIMEOUT, int(seconds)))
            protocol.operation_timeout_sec = whole
            _set_timeouts(protocol, self._endpoint.connect_timeout, whole + NETWORK_DELAY)
            answer = do(protocol)
        except NodefallError as error:
            raise RequestFailure(error, had_no_effect=True) from error
        except Exception as error:
            raise self._noted(translate(error, self._endpoint, operation)) from error
        self._logins.accept()
        return answer

    def _opened(self, operation: str) -> CheckedProtocol:
        """Open the connection. If this fails, the operation has had no effect."""
        try:
            self._logins.check()
            return self._connect()
        except NodefallError as error:
            raise RequestFailure(error, had_no_effect=True) from error
        except Exception as error:
            failure = self._noted(translate(error, self._endpoint, operation))
            raise RequestFailure(failure.error, had_no_effect=True) from error

    def _noted(self, failure: RequestFailure) -> RequestFailure:
        if isinstance(failure.error, RejectedLogin):
            self._logins.reject(failure.error)
        return failure

    def _connect(self) -> CheckedProtocol:
        """Make a session that ignores proxies, certificates and .netrc of the environment, and follows no redirects."""
        endpoint = self._endpoint
        adapter = VerifyingAdapter(endpoint, self._verify)
        protocol = CheckedProtocol(
            endpoint.url,
            transport=endpoint.auth,
            username=endpoint.user or None,
            password=endpoint.password,
            ca_trust_path=None,  # type: ignore[arg-type]  # documented: no further authorities
            cert_pem=str(endpoint.certificate) if endpoint.certificate else None,
            cert_key_pem=str(endpoint.key) if endpoint.key else None,
            kerberos_hostname_override=endpoint.hostname or None,
            message_encryption="never",  # see below: building the session would send a message before it is ours
            proxy=None,
        )
        transport = protocol.transport
        session = transport.build_session()
        session.trust_env, session.proxies, session.max_redirects = False, {}, 0
        session.mount(f"{endpoint.scheme}://", adapter)
        if endpoint.scheme == "http":
            if endpoint.auth == "kerberos" and not getattr(session.auth, "winrm_encryption_available", False):
                raise WinRMError("the installed Kerberos library cannot encrypt messages")
            _set_timeouts(protocol, endpoint.connect_timeout, NETWORK_DELAY)
            transport.setup_encryption(session)
        return protocol


def _set_timeouts(protocol: Protocol, connect: float, read: float) -> None:
    """Set the timeouts in seconds; pywinrm passes them on to requests, which accepts a pair."""
    timeouts: Any = (connect, read)
    protocol.transport.read_timeout_sec = timeouts
