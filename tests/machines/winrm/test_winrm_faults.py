"""Faults on the wire: what is said of a command, its exit code, and the message.

Any exception of pywinrm, requests and what they use becomes one sentence with a hint.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from xml.etree.ElementTree import ParseError

import pytest
import requests
from spnego.exceptions import InvalidTokenError
from winrm.exceptions import InvalidCredentialsError, WinRMError, WinRMTransportError

import chaos.machines.winrm.client
from chaos.core.command import Delivery, HostCommand
from chaos.machines.winrm.endpoint import Endpoint
from chaos.machines.winrm.faults import MEANINGS, translate
from chaos.machines.winrm.session import WinRmSession
from tests.kit.tls_authority import DAY, Authority
from tests.kit.wsman_server import (
    ANSWERS,
    RUNNING_OUT,
    Answer,
    WsManServer,
    fault,
    quoted_fault,
    recorded,
    serving_wsman,
)

RUN = HostCommand((r"C:\Windows\System32\shutdown.exe", "/r", "/f"), timeout=20)
NOT_SENT, LOST, ANSWERED = Delivery.NOT_SENT, Delivery.LOST, Delivery.ANSWERED
HTML = Answer(200, "<!DOCTYPE html><html><br><p>Welcome", "text/html")
NO_SOAP = Answer(200, "<html><body>Welcome</body></html>", "text/html")
PLAIN_500 = Answer(500, b"Internal Server Error", "text/plain")
LATIN_1 = Answer(500, "Größe".encode("latin-1"), "text/plain")
DROP = Answer(drop=True)
QUOTA = fault("faults/pywinrm_unit_wmierror_2150859174.xml")
OLD_QUOTA = quoted_fault(2150859174)
SHELLS = fault("faults/winrb_wmi_error_v2.xml")
OLD_SHELLS = quoted_fault(2150859173)
GONE = quoted_fault(2150858843)
NESTED_GONE = fault("faults/2150858843_shell_gone_get.response.xml")
TOO_LONG = fault("faults/masterzen_executeCommandResponseWithError.xml")
INVALID = fault("faults/pypsrp_unit_87_server2016.xml")
SCHEMA = fault("faults/pywinrm_unit_2150858817.xml")
MUST_UNDERSTAND = fault("faults/pypsrp_unit_MustUnderstand.xml")
UNKNOWN = fault("faults/winrb_soap_fault_v1.xml")
REDIRECT = Answer(302, b"", headers=(("Location", "/login"),))
ENDPOINT = Endpoint("win-1", "10.0.0.7", 5986, "ntlm", "ops", "Passw0rd-of-the-test")


def coded(code: int) -> Answer:
    """A recorded fault with another code: those of which only the code is known."""
    return Answer(
        500, recorded("faults/masterzen_executeCommandResponseWithError.xml").replace("2147942606", str(code))
    )


def cut(operation: str) -> Answer:
    """The default answer, broken off in the middle."""
    return Answer(200, ANSWERS[operation][: len(ANSWERS[operation]) // 2])


def other_message(operation: str) -> Answer:
    return Answer(200, ANSWERS[operation], relates=False)


def without_exit_code() -> Answer:
    return Answer(200, recorded("masterzen/doneCommandResponse.xml").replace("<rsp:ExitCode>123</rsp:ExitCode>", ""))


# operation, its answers, delivery, exit code, part of the message
TABLE: list[tuple[str, list[Answer], Delivery, int | None, str]] = [
    ("Create", [HTML], NOT_SENT, None, "sent an answer to Create that cannot be parsed: it is not well-formed XML"),
    ("Create", [NO_SOAP], NOT_SENT, None, "cannot be parsed: it is not a SOAP envelope"),
    ("Create", [PLAIN_500], NOT_SENT, None, "answered Create with HTTP status 500 and no fault"),
    ("Create", [LATIN_1], NOT_SENT, None, "cannot be parsed: it is not UTF-8"),
    ("Create", [Answer(503, b"")], NOT_SENT, None, "answered Create with HTTP status 503 and no fault"),
    ("Create", [Answer(404, b"")], NOT_SENT, None, "HTTP status 404 and no fault (check port in the inventory"),
    ("Create", [REDIRECT], NOT_SENT, None, "answered Create with a redirection"),
    ("Create", [cut("Create")], NOT_SENT, None, "it is not well-formed XML"),
    ("Create", [Answer(200, b"")], NOT_SENT, None, "it is not well-formed XML"),
    ("Create", [other_message("Create")], NOT_SENT, None, "it is the answer to another message"),
    ("Create", [DROP], NOT_SENT, None, "the connection to win-1 (Administrator@127.0.0.1:"),
    ("Create", [RUNNING_OUT], NOT_SENT, None, "did not finish Create in time"),
    ("Create", [SHELLS], NOT_SENT, None, "fault 2150859173: the user has too many shells (MaxShellsPerUser): "),
    ("Create", [OLD_SHELLS], NOT_SENT, None, "fault 2150859173: the user has too many shells"),
    ("Create", [coded(5)], NOT_SENT, None, "fault 5: the user is authenticated, but not authorized"),
    ("Create", [coded(2147942405)], NOT_SENT, None, "fault 2147942405: the user is authenticated, but not"),
    ("Create", [coded(2147943418)], NOT_SENT, None, "the profile of the user is being unloaded"),
    ("Create", [MUST_UNDERSTAND], NOT_SENT, None, "it does not understand a header of the request"),
    ("Create", [UNKNOWN], NOT_SENT, None, "answered Create with fault 2150858778: "),
    ("Command", [PLAIN_500], LOST, None, "HTTP status 500 and no fault; the command may have run"),
    ("Command", [Answer(503, b"")], LOST, None, "HTTP status 503 and no fault; the command may have run"),
    ("Command", [Answer(400, b"")], LOST, None, "HTTP status 400 and no fault; the command may have run"),
    ("Command", [HTML], LOST, None, "it is not well-formed XML; the command may have run"),
    ("Command", [NO_SOAP], LOST, None, "it is not a SOAP envelope; the command may have run"),
    ("Command", [cut("Command")], LOST, None, "it is not well-formed XML; the command may have run"),
    ("Command", [other_message("Command")], LOST, None, "the answer to another message; the command may have run"),
    ("Command", [LATIN_1], LOST, None, "it is not UTF-8; the command may have run"),
    ("Command", [DROP], LOST, None, "was lost during Command: it closed the connection; the command may have run"),
    ("Command", [RUNNING_OUT], LOST, None, "did not finish Command in time; the command may have run"),
    ("Command", [UNKNOWN], LOST, None, "with fault 2150858778: "),
    ("Command", [coded(5)], LOST, None, "not authorized"),
    ("Command", [coded(995)], LOST, None, "the operation was aborted"),
    ("Command", [coded(2147943418)], LOST, None, "the profile of the user is being unloaded"),
    ("Command", [TOO_LONG], NOT_SENT, None, "fault 2147942606: the command line is too long: The filename or"),
    ("Command", [coded(2147942402)], NOT_SENT, None, "fault 2147942402: the program does not exist there"),
    ("Command", [INVALID], NOT_SENT, None, "fault 87: the request is invalid"),
    ("Command", [SCHEMA], NOT_SENT, None, "fault 2150858817: the request does not follow the schema"),
    ("Command", [coded(2150858767)], NOT_SENT, None, "fault 2150858767: a header of the request is invalid"),
    ("Command", [coded(2150859236)], NOT_SENT, None, "a quota of its shell plug-in is exhausted"),
    ("Command", [coded(2150859242)], NOT_SENT, None, "a quota of its shell plug-in is exhausted"),
    ("Command", [QUOTA], ANSWERED, 0, ""),
    ("Command", [OLD_QUOTA], ANSWERED, 0, ""),
    ("Command", [QUOTA, OLD_QUOTA], NOT_SENT, None, "has too many operations (MaxConcurrentOperationsPerUser)"),
    ("Command", [GONE], ANSWERED, 0, ""),
    ("Command", [NESTED_GONE], ANSWERED, 0, ""),
    ("Command", [GONE, GONE], NOT_SENT, None, "fault 2150858843: the shell no longer exists"),
    ("Receive", [RUNNING_OUT, RUNNING_OUT], ANSWERED, 0, ""),
    ("Receive", [PLAIN_500], LOST, None, "and no fault; the command was started, and its end is unknown"),
    ("Receive", [Answer(503, b"")], LOST, None, "HTTP status 503 and no fault; the command was started"),
    ("Receive", [HTML], LOST, None, "it is not well-formed XML; the command was started"),
    ("Receive", [NO_SOAP], LOST, None, "it is not a SOAP envelope; the command was started"),
    ("Receive", [cut("Receive")], LOST, None, "it is not well-formed XML; the command was started"),
    ("Receive", [other_message("Receive")], LOST, None, "to another message; the command was started"),
    ("Receive", [Answer(200, recorded("masterzen/executeCommandResponse.xml"))], LOST, None, "not say whether"),
    ("Receive", [without_exit_code()], LOST, None, "the command has ended without an exit code"),
    ("Receive", [DROP], LOST, None, "was lost during Receive: it closed the connection; the command was started"),
    ("Receive", [GONE], LOST, None, "fault 2150858843"),
    ("Receive", [QUOTA], LOST, None, "fault 2150859174"),
    ("Receive", [coded(995)], LOST, None, "fault 995: the operation was aborted"),
    ("Signal", [GONE], ANSWERED, 0, ""),
    ("Signal", [coded(995)], ANSWERED, 0, ""),
    ("Signal", [Answer(400, b"")], ANSWERED, 0, ""),
    ("Signal", [DROP], ANSWERED, 0, ""),
    ("Signal", [other_message("Signal")], ANSWERED, 0, ""),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "answers", "delivery", "exit_code", "message"), TABLE)
def test_faults(
    session: WinRmSession,
    service: WsManServer,
    operation: str,
    answers: list[Answer],
    delivery: Delivery,
    exit_code: int | None,
    message: str,
) -> None:
    service.script[operation].extend(answers)
    outcome = session.run(RUN)
    assert (outcome.delivery, outcome.exit) == (delivery, exit_code)
    assert (message in outcome.error) if message else outcome.error == ""
    assert service.script[operation] or service.operations().count(operation) >= len(answers)
    again = session.run(RUN)  # no failure stays
    assert (again.delivery, again.exit, again.error) == (ANSWERED, 0, "")


@pytest.mark.parametrize(
    ("operation", "delivery"), [("Create", NOT_SENT), ("Command", LOST), ("Receive", LOST), ("Signal", ANSWERED)]
)
def test_a_host_that_does_not_answer(
    session: WinRmSession,
    service: WsManServer,
    operation: str,
    delivery: Delivery,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chaos.machines.winrm.client, "OPERATION_TIMEOUT", 1)
    monkeypatch.setattr(chaos.machines.winrm.client, "NETWORK_DELAY", 0.2)
    service.script[operation].append(Answer(hang=True))
    outcome = session.run(RUN)
    assert outcome.delivery == delivery
    assert (f"did not answer {operation}" in outcome.error) == (delivery is not ANSWERED)


@pytest.mark.parametrize(("operation", "delivery"), [("Create", NOT_SENT), ("Command", NOT_SENT), ("Receive", LOST)])
def test_a_login_that_is_rejected(
    session: WinRmSession, service: WsManServer, operation: str, delivery: Delivery
) -> None:
    """Also in the middle of a session: the request was not carried out."""
    service.script[operation].append(Answer(401, b""))
    outcome = session.run(RUN)
    assert outcome.delivery == delivery
    assert (
        "rejected the login by basic (401): the user or password is wrong, or messages must be encrypted, or basic is"
        " switched off there"
    ) in outcome.error


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("expired", "has a certificate that cannot be trusted: certificate has expired (renew the certificate"),
        ("other address", "cannot be trusted: IP address mismatch, certificate is not valid for '127.0.0.1'"),
        ("other authority", "cannot be trusted: unable to get local issuer certificate (name its authority as caFile"),
        ("plain http", "failed the TLS handshake"),
    ],
)
def test_a_host_that_cannot_be_trusted(tmp_path: Path, authority: Authority, what: str, error: str) -> None:
    expired = datetime.datetime.now(datetime.UTC) - DAY
    (tmp_path / "other").mkdir()
    signer = Authority(tmp_path / "other", "other") if what == "other authority" else authority
    context = signer.server(expired) if what == "expired" else signer.server()
    if what == "other address":
        context = signer.server(address="127.0.0.9")
    with serving_wsman(None if what == "plain http" else context, authority.file) as service:
        session = WinRmSession(service.endpoint(scheme="https"))
        outcome = session.run(RUN)
        session.close()
        assert service.headers == []
    assert outcome.delivery == NOT_SENT
    assert error in outcome.error


def test_a_quota_that_is_reached_in_the_middle_of_a_run(session: WinRmSession, service: WsManServer) -> None:
    """The shell is deleted, which gives its operations back."""
    session.run(RUN)
    first = service.requests[0]
    service.script["Command"].append(QUOTA)
    assert session.run(RUN).exit == 0
    assert service.operations().count("Create") == 2
    deleted = [request.shell for request in service.requests if request.operation == "Delete"]
    assert len(deleted) == 1
    assert deleted[0] not in service.shells
    assert first.operation == "Create"


class KerberosExchangeError(requests.RequestException):
    """As pywinrm's, which cannot be imported without pykerberos."""


@pytest.mark.parametrize(
    ("error", "had_no_effect", "message"),
    [
        (
            ParseError("no element found"),
            False,
            "sent an answer to Command that cannot be parsed: it is not well-formed",
        ),
        (StopIteration(), False, "cannot be parsed: an element is missing"),
        (AssertionError(), False, "cannot be parsed: it is the answer to another message"),
        (KeyError("Content-Type"), False, "cannot be parsed: a header or attribute is missing"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), False, "cannot be parsed: it is not UTF-8"),
        (ValueError("Passw0rd-of-the-test"), False, "cannot be parsed: ValueError"),
        (requests.ReadTimeout(), False, "did not answer Command"),
        (requests.ConnectionError(), False, "was lost during Command: ConnectionError"),
        (ConnectionResetError(104, "Connection reset by peer"), False, "during Command: Connection reset by peer"),
        (requests.TooManyRedirects(), False, "answered Command with a redirection"),
        (InvalidCredentialsError("x"), True, "rejected the login by ntlm (401)"),
        (PermissionError("Access denied"), True, "rejected the login by ntlm (401)"),
        (InvalidTokenError(context_msg="x"), False, "login or encryption by ntlm failed on win-1 (ops@10.0.0.7:5986)"),
        (
            KerberosExchangeError("no ticket"),
            False,
            "login or encryption by ntlm failed on win-1 (ops@10.0.0.7:5986): no",
        ),
        (WinRMTransportError("http", 503, "Passw0rd-of-the-test"), False, "answered Command with HTTP status 503"),
        (WinRMError("kerberos is not installed"), False, "cannot be used: kerberos is not installed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_exceptions(error: Exception, had_no_effect: bool, message: str) -> None:
    failure = translate(error, ENDPOINT, "Command")
    assert message in failure.error.message
    assert failure.error.hint
    assert failure.had_no_effect is had_no_effect
    assert failure.breaks_connection
    assert ENDPOINT.password not in f"{failure.error.message} {failure.error.hint} {failure!r}"


def test_a_login_is_rejected_for_one_of_three_reasons() -> None:
    message = translate(InvalidCredentialsError("x"), ENDPOINT, "Create").error.message
    assert message.endswith(
        "the user or password is wrong, or messages must be encrypted, or ntlm is switched off there"
    )


def test_only_what_certainly_never_ran_had_no_effect() -> None:
    """By the documentation of each code; others leave open what happened."""
    assert {code for code, meaning in MEANINGS.items() if not meaning.had_no_effect} == {
        5, 170, 995, 2147942405, 2147943418, 2150859180,
    }  # fmt: skip
