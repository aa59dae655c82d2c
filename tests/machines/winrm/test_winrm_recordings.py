"""What Windows answered other clients, read by ours: outputs, exit codes and faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.machines.windows_command_line import process_command_line
from chaos.machines.winrm.client import Received, WinRmClient
from chaos.machines.winrm.endpoint import LoginPause
from chaos.machines.winrm.faults import RequestFailure
from tests.kit.wsman_server import RECORDINGS, Answer, WsManServer, recorded

LINE = process_command_line([r"C:\Windows\System32\hostname.exe"])
SHELL, COMMAND = "4283CBDC-3706-415B-88BD-B385F3E51A53", "D2B3A8F0-0000-0000-0000-000000000000"


def messages(name: str) -> Iterator[tuple[str, str, int]]:
    """Operation, answer and HTTP status of each round trip of a recording."""
    document: Any = yaml.safe_load(recorded(f"pypsrp/{name}.yml"))
    for message in document["messages"]:
        action = re.search(r"Action[^>]*>[^<]*/(\w+)<", message["request"])
        assert action
        yield action[1], message["response"], message.get("transport_error", {}).get("code", 200)


def receive_all(service: WsManServer, client: WinRmClient, name: str) -> Received:
    """The answers to Receive of a recording, together."""
    answers = [Answer(status, text) for operation, text, status in messages(name) if operation == "Receive"]
    service.script["Receive"].extend(answers)
    found = [client.receive(SHELL, COMMAND, 5) for _ in answers]
    code = next((each.exit for each in found if each.exit is not None), None)
    return Received(b"".join(each.stdout for each in found), b"".join(each.stderr for each in found), code)


@pytest.fixture
def client(service: WsManServer) -> Iterator[WinRmClient]:
    found = WinRmClient(service.endpoint(), lambda _: None, LoginPause())
    yield found
    found.close()


@pytest.mark.parametrize(
    ("name", "received"),
    [
        ("winrs_standard", Received(b"hi\r\n", b"", 0)),
        ("winrs_stderr_rc", Received(b"out \r\n", b"err \r\n", 1)),
        ("winrs_unicode", Received("こんにちは\n".encode(), b"", 0)),
        ("winrs_send", Received(b"output 1\noutput 2\n", b"", 0)),
        ("winrs_operation_timeout", Received(b"hi\nhi again\n", b"", 0)),
        ("winrs_no_cmd_shell", Received(b"hi\n", b"", 0)),
        ("winrs_extra_opts", Received(b"C:\\Windows\r\n", b"", 0)),
    ],
)
def test_outputs(service: WsManServer, client: WinRmClient, name: str, received: Received) -> None:
    assert receive_all(service, client, name) == received


@pytest.mark.parametrize(
    "body",
    [
        "masterzen/createShellResponse.xml",
        "pywinrm/open_shell_response.xml",
        "winrb/open_shell_v1.xml",
        "winrb/open_shell_v2.xml",
    ],
)
def test_shells_of_every_version_are_found(service: WsManServer, client: WinRmClient, body: str) -> None:
    service.script["Create"].append(Answer(200, recorded(body)))
    shell = client.create_shell(5)
    recorded_by_old = "uuid:739990FF-1492-4CDD-80BB-6E07ADB06D85"  # with another quotation mark, so it is not replaced
    assert shell in {*service.shells, recorded_by_old}


def test_recorded_faults_of_a_command(service: WsManServer, client: WinRmClient) -> None:
    (answer,) = [text for op, text, status in messages("winrs_no_cmd_shell") if op == "Command" and status == 500]
    service.script["Command"].append(Answer(500, answer))
    with pytest.raises(RequestFailure) as failed:
        client.start(SHELL, LINE, has_stdin=False, seconds=5)
    assert (failed.value.code, failed.value.had_no_effect) == (2147942402, True)
    assert "the program does not exist there: The system cannot find the file specified." in failed.value.error.message


@pytest.mark.parametrize(("name", "code"), [("winrs_bad_cmd_id", 2150858843), ("winrs_fail_poll_process", 87)])
def test_recorded_faults_of_receive(service: WsManServer, client: WinRmClient, name: str, code: int) -> None:
    with pytest.raises(RequestFailure) as failed:
        receive_all(service, client, name)
    assert (failed.value.code, failed.value.breaks_connection) == (code, False)


@pytest.mark.parametrize("path", sorted((RECORDINGS / "faults").glob("*.xml")), ids=lambda path: str(path.name))
def test_every_recorded_fault_has_a_sentence_and_a_hint(service: WsManServer, client: WinRmClient, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if "Fault>" not in text or path.name == "quoted_in_issues.xml":
        return
    service.script["Create"].append(Answer(500, text))
    with pytest.raises(RequestFailure) as failed:
        client.create_shell(5)
    assert failed.value.error.message.startswith("win-1 (Administrator@127.0.0.1:")
    assert failed.value.error.hint
    assert not failed.value.breaks_connection
    assert "\n" not in failed.value.error.message
