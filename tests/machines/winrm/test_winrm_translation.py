"""Any exception of pywinrm, requests and what they use becomes one sentence with a hint."""

from __future__ import annotations

from xml.etree.ElementTree import ParseError

import pytest
import requests
from spnego.exceptions import InvalidTokenError
from winrm.exceptions import InvalidCredentialsError, WinRMError, WinRMTransportError

from chaos.machines.winrm.endpoint import Endpoint
from chaos.machines.winrm.faults import MEANINGS, translate

ENDPOINT = Endpoint("win-1", "10.0.0.7", 5986, "ntlm", "ops", "Passw0rd-of-the-test")


class KerberosExchangeError(requests.RequestException):
    """As pywinrm's, which cannot be imported without pykerberos."""


@pytest.mark.parametrize(
    ("error", "had_no_effect", "message"),
    [
        (
            ParseError("no element found"),
            False,
            "sent an answer to Command that is not understood: it is not well-formed",
        ),
        (StopIteration(), False, "not understood: an element is missing"),
        (AssertionError(), False, "not understood: it is the answer to another message"),
        (KeyError("Content-Type"), False, "not understood: a header or attribute is missing"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), False, "not understood: it is not UTF-8"),
        (ValueError("Passw0rd-of-the-test"), False, "not understood: ValueError"),
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
