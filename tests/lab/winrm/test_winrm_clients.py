"""Unchanged clients against the lab's WinRM: pypsrp's WinRS and pywinrm's Protocol; and SSH of the same node."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3
from pypsrp.exceptions import AuthenticationError, WSManFaultError
from pypsrp.shell import Process, SignalCode, WinRS
from pypsrp.wsman import WSMan
from winrm.exceptions import InvalidCredentialsError, WinRMOperationTimeoutError
from winrm.exceptions import WSManFaultError as PywinrmFault
from winrm.protocol import Protocol

from chaos.core.windows import powershell, system_program
from chaos.machines.windows_command_line import WindowsShell, shell_command_line
from tests.kit.winrm_exchanges import load
from tests.lab.conftest import Client, start, stop

pytestmark = [pytest.mark.lab, pytest.mark.slow]
NODES = [{"name": "cp", "role": "control-plane"}, {"name": "win1", "os": "windows", "bootSeconds": 10}]
REGISTER = powershell("register-task", task="t")
POWERSHELL = REGISTER[0]
TASK = (
    b'<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">'
    b"<Actions><Exec><Command>hostname.exe</Command></Exec></Actions></Task>"
)


class WinRm:
    """The node's endpoint, its account, and clients for it."""

    def __init__(self, client: Client) -> None:
        self.lab, self.facts = client, client.host("win1")["winrm"]
        self.password = Path(self.facts["passwordFile"]).read_text()

    def wsman(self, auth: str = "basic", password: str = "", **options: Any) -> WSMan:
        port, trust = urlsplit(self.facts["https"]).port, self.facts["caFile"]
        login = {"username": self.facts["user"], "password": password or self.password, "auth": auth}
        return WSMan("127.0.0.1", port=port, ssl=True, cert_validation=trust, **login, **options)

    def protocol(self, transport: str = "basic", password: str = "", **options: Any) -> Protocol:
        login = {"transport": transport, "username": self.facts["user"], "password": password or self.password}
        return Protocol(self.facts["https"], **login, ca_trust_path=self.facts["caFile"], **options)


def _serve(pace: str) -> Iterator[WinRm]:
    process, facts = start("--pace", pace, nodes=NODES)
    client = Client(process, facts)
    yield WinRm(client)
    client.close()
    stop(process)


@pytest.fixture(scope="module")
def winrm() -> Iterator[WinRm]:
    yield from _serve("400")


@pytest.fixture
def own_winrm() -> Iterator[WinRm]:
    """For a test that takes the machine down."""
    yield from _serve("100")


def _by_pypsrp(
    wsman: WSMan, program: str, arguments: list[str], stdin: bytes = b"", **shell: Any
) -> tuple[int, bytes, bytes]:
    with WinRS(wsman, **shell) as opened:
        process = Process(opened, program, arguments)
        process.begin_invoke()
        if stdin:
            process.send(stdin, end=True)
        process.end_invoke()
        process.signal(SignalCode.CTRL_C)
        assert process.rc is not None
        return process.rc, process.stdout, process.stderr


def _by_pywinrm(
    protocol: Protocol, program: str, arguments: list[str], stdin: bytes = b"", **shell: Any
) -> tuple[int, bytes, bytes]:
    opened = protocol.open_shell(codepage=65001, **shell)
    try:
        command = protocol.run_command(opened, program, arguments)
        if stdin:
            protocol.send_command_input(opened, command, stdin, end=True)
        out, err, code = protocol.get_command_output(opened, command)
        protocol.cleanup_command(opened, command)
    finally:
        protocol.close_shell(opened)
    return code, out, err


Run = Callable[..., tuple[int, bytes, bytes]]


@pytest.fixture(params=["pypsrp basic", "pypsrp ntlm", "pypsrp negotiate", "pywinrm basic", "pywinrm ntlm"])
def run(request: pytest.FixtureRequest, winrm: WinRm) -> Run:
    """Run a program by one of the clients."""
    client, auth = request.param.split()
    if client == "pypsrp":
        wsman = winrm.wsman(auth)
        return lambda *args, **options: _by_pypsrp(wsman, *args, **{"codepage": 65001, **options})
    protocol = winrm.protocol(auth)
    return lambda *args, **options: _by_pywinrm(protocol, *args, **options)


@pytest.mark.parametrize(
    ("program", "arguments", "stdin", "expected"),
    [
        ("hostname.exe", [], b"", (0, b"win1\r\n", b"")),
        (POWERSHELL, REGISTER[1:], TASK, (0, b"", b"")),
        (POWERSHELL, REGISTER[1:], b"<Task/>", (1, b"", None)),
        ("shutdown.exe", ["/a"], b"", (1116, b"", None)),
        ("nosuch", [], b"", (1, b"", None)),
    ],
    ids=["standard", "stdin", "stderr", "shutdown", "unknown"],
)  # fmt: skip
def test_results(run: Run, program: str, arguments: list[str], stdin: bytes, expected: tuple[Any, ...]) -> None:
    code, out, err = run(program, arguments, stdin)
    assert (code, out) == expected[:2]
    assert expected[2] is None or err == expected[2]


def test_a_long_command_is_polled_for(winrm: WinRm) -> None:
    """Ten seconds of OperationTimeout, thirty of a command: both clients poll until the end."""
    words = _waiting(30)
    assert _by_pypsrp(winrm.wsman(operation_timeout=10), words[0], list(words[1:]))[:2] == (0, b"win1\r\n")
    protocol = winrm.protocol(operation_timeout_sec=10)
    assert _by_pywinrm(protocol, words[0], list(words[1:]))[:2] == (0, b"win1\r\n")
    shell = protocol.open_shell()
    command = protocol.run_command(shell, words[0], words[1:])
    with pytest.raises(WinRMOperationTimeoutError):
        protocol.get_command_output_raw(shell, command)
    protocol.close_shell(shell)


def _waiting(seconds: int) -> tuple[str, ...]:
    """A program that prints the host's name after some time."""
    return powershell("failsafe-run", wait=seconds, program=system_program("hostname"), arguments=[], task="none")


def test_shell_options_are_accepted(winrm: WinRm) -> None:
    options: dict[str, Any] = {
        "environment": {"env1": "var1"},
        "working_directory": r"C:\Windows",
        "idle_time_out": 60,
        "lifetime": 60,
        "name": "shell 1",
    }
    assert _by_pypsrp(winrm.wsman(), "hostname.exe", [], **options) == (0, b"win1\r\n", b"")


def test_programs_without_cmd_need_a_full_path(winrm: WinRm) -> None:
    with WinRS(winrm.wsman()) as shell:
        process = Process(shell, "hostname.exe", no_shell=True)
        with pytest.raises(WSManFaultError) as caught:
            process.invoke()
        assert caught.value.code == 2147942402
        process = Process(shell, system_program("hostname"), no_shell=True)
        process.invoke()
        assert (process.rc, process.stdout) == (0, b"win1\r\n")
        process.signal(SignalCode.CTRL_C)


def test_bad_identifiers(winrm: WinRm) -> None:
    protocol = winrm.protocol()
    shell = protocol.open_shell()
    unknown = "87E77BEB-6761-4C48-9D70-A00266B8459A"
    with pytest.raises(PywinrmFault) as caught:
        protocol.get_command_output_raw(shell, unknown)
    assert (caught.value.wsman_fault_code, caught.value.fault_subcode) == (2150858843, "w:InvalidSelectors")
    protocol.close_shell(shell)
    for gone in (shell, unknown):
        with pytest.raises(PywinrmFault) as caught:
            protocol.run_command(gone, "hostname")
        assert caught.value.wsman_fault_code == 2150858843


def test_wrong_passwords(winrm: WinRm) -> None:
    with pytest.raises(AuthenticationError):
        _by_pypsrp(winrm.wsman("ntlm", "wrong"), "hostname.exe", [])
    for auth in ("ntlm", "basic"):
        with pytest.raises(InvalidCredentialsError):
            winrm.protocol(auth, "wrong").open_shell()


def test_the_service_answers_401_and_404_and_400(winrm: WinRm) -> None:
    http, url = winrm.lab.http, winrm.facts["https"]
    answer = http.request("POST", url, body=b"<a/>")
    assert (answer.status, answer.data) == (401, b"")
    assert answer.headers.getlist("WWW-Authenticate") == ["Negotiate", 'Basic realm="WSMAN"']
    assert http.request("POST", url + "/other", body=b"").status == 404
    for bad in (
        "Basic !",
        "Negotiate !",
        "Negotiate AAAA",
        "Digest x",
        f"Basic {base64.b64encode(b'Administrator').decode()}",
    ):
        assert http.request("POST", url, body=b"", headers={"Authorization": bad}).status == 401
    basic = urllib3.make_headers(basic_auth=f"win1\\administrator:{winrm.password}")
    assert http.request("POST", url, body=load("winrs_standard.yml")[0].request, headers=basic).status == 200


def _is_open(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) == 0


def test_a_reboot_ends_shells_and_the_service_is_back_after_it(own_winrm: WinRm) -> None:
    protocol = own_winrm.protocol()
    shell = protocol.open_shell()
    command = protocol.run_command(shell, "shutdown", ["/r", "/t", "0", "/f"])
    assert protocol.get_command_output(shell, command) == (b"", b"", 0)
    command = protocol.run_command(shell, "shutdown", ["/r", "/t", "60"])
    assert protocol.get_command_output(shell, command)[2] == 1115
    own_winrm.lab.forget("win1")
    with own_winrm.lab.clock.participant():
        closed = False
        for _ in range(200):
            own_winrm.lab.clock.sleep(1.0)
            closed = closed or not _is_open(own_winrm.facts["https"])
            if closed and _is_open(own_winrm.facts["https"]):
                break
    assert closed
    protocol = own_winrm.protocol()
    with pytest.raises(PywinrmFault) as caught:
        protocol.run_command(shell, "hostname")
    assert caught.value.wsman_fault_code == 2150858843
    assert _by_pywinrm(protocol, "hostname", [])[:2] == (0, b"win1\r\n")


def test_the_bmc_restarts_the_machine_in_order(own_winrm: WinRm) -> None:
    """EventLog 6006 is the mark of a clean stop; a second request is refused meanwhile."""
    lab = own_winrm.lab
    assert lab.redfish("POST", "win1", "GracefulRestart")[0] == 204
    assert lab.redfish("POST", "win1", "GracefulRestart")[0] == 409
    lab.wait(120.0)
    query = "/q:*[System[(Provider[@Name='EventLog']) and (EventID=6006)]]"
    script = ["qe", "System", f'"{query}"', "/c:1", "/rd:true", "/f:xml"]
    assert b"<EventID>6006</EventID>" in _by_pypsrp(own_winrm.wsman(), "wevtutil.exe", script)[1]


@pytest.mark.parametrize(
    ("line", "code", "stdout", "stderr"),
    [
        ("hostname", 0, "win1\r\n", ""),
        ("shutdown /a", 1, "", "Unable to abort the system shutdown because no shutdown was in progress.(1116)\n"),
        ("nosuch", 1, "", None),
    ],
)
def test_the_ssh_port_takes_lines_of_cmd(winrm: WinRm, line: str, code: int, stdout: str, stderr: str | None) -> None:
    ran = winrm.lab.run("win1", line)
    assert (ran.code, ran.stdout) == (code, stdout)
    assert stderr is None or ran.stderr == stderr


def test_stdin_over_ssh(winrm: WinRm) -> None:
    assert winrm.lab.run("win1", shell_command_line(REGISTER, WindowsShell.CMD), TASK.decode()).code == 0


def test_a_wait_over_ssh_takes_simulated_time(winrm: WinRm) -> None:
    before, began = winrm.lab.clock.now(), time.monotonic()
    assert winrm.lab.run("win1", shell_command_line(_waiting(30), WindowsShell.CMD)).code == 0
    assert 30.0 <= winrm.lab.clock.now() - before < 60.0
    assert time.monotonic() - began < 20.0
