"""Faults of WinRM that the lab injects, as an unchanged client sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from pypsrp.exceptions import WSManFaultError
from pypsrp.shell import Process, SignalCode, WinRS
from pypsrp.wsman import WSMan

from chaos.lab.spec import LabSpec, SpecError
from chaos.model.windows import powershell
from tests.lab.conftest import Client, start, stop

NODES = [{"name": "cp", "role": "control-plane"}, {"name": "win1", "os": "windows", "bootSeconds": 10}]
TIMED_OUT, BUSY, ABORTED = 2150858793, 170, 995
REGISTER = powershell("register-task", task="t")
TASK = (
    b'<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">'
    b"<Actions><Exec><Command>hostname.exe</Command></Exec></Actions></Task>"
)


@contextmanager
def _lab(*names: str) -> Iterator[Client]:
    process, facts = start("--pace", "200", nodes=NODES, winrmMisbehaviours=list(names))
    client = Client(process, facts)
    try:
        yield client
    finally:
        client.close()
        stop(process)


def _wsman(lab: Client, **options: Any) -> WSMan:
    facts = lab.host("win1")["winrm"]
    login = {"username": facts["user"], "password": Path(facts["passwordFile"]).read_text(), "auth": "basic"}
    port = urlsplit(facts["https"]).port
    return WSMan("127.0.0.1", port=port, ssl=True, cert_validation=facts["caFile"], **login, **options)


def _hostname(lab: Client, **options: Any) -> bytes:
    with WinRS(_wsman(lab, **options)) as shell:
        process = Process(shell, "hostname.exe")
        process.invoke()
        process.signal(SignalCode.CTRL_C)
        return bytes(process.stdout)


def _code(caught: pytest.ExceptionInfo[WSManFaultError]) -> int:
    return int(caught.value.code)


def _boot_id(lab: Client) -> int:
    _, node = lab.api("GET", "/api/v1/nodes/win1")
    return int(node["status"]["nodeInfo"]["bootID"])


@pytest.mark.lab
def test_send_is_refused_once_and_the_input_arrives_once() -> None:
    with _lab("busy-send") as lab, WinRS(_wsman(lab)) as shell:
        process = Process(shell, REGISTER[0], list(REGISTER[1:]), no_shell=True)
        process.begin_invoke()
        with pytest.raises(WSManFaultError) as caught:
            process.send(TASK, end=True)
        assert _code(caught) == BUSY
        process.send(TASK, end=True)
        process.end_invoke()
        assert (process.rc, process.stderr) == (0, b"")


@pytest.mark.lab
def test_a_clean_up_that_is_aborted_was_done() -> None:
    with _lab("aborted-clean-up") as lab:
        shell = WinRS(_wsman(lab))
        shell.open()
        process = Process(shell, "hostname.exe")
        process.invoke()
        with pytest.raises(WSManFaultError) as caught:
            process.signal(SignalCode.CTRL_C)
        assert _code(caught) == ABORTED
        with pytest.raises(WSManFaultError) as caught:
            shell.close()
        assert _code(caught) == ABORTED
        with pytest.raises(WSManFaultError) as caught:
            Process(shell, "hostname.exe").invoke()
        assert _code(caught) == 2150858843


@pytest.mark.lab
def test_after_a_boot_the_service_hangs_and_then_is_busy() -> None:
    with _lab("hang-after-boot", "busy-after-boot") as lab:
        assert _hostname(lab) == b"win1\r\n"
        assert lab.redfish("POST", "win1", "ForceRestart")[0] == 204
        lab.wait(12.0)
        with pytest.raises(requests.exceptions.ReadTimeout):
            _hostname(lab, read_timeout=1, operation_timeout=1)
        lab.wait(12.0)
        with pytest.raises(WSManFaultError) as caught:
            _hostname(lab, operation_timeout=2)
        assert _code(caught) == TIMED_OUT
        lab.wait(30.0)
        assert _hostname(lab) == b"win1\r\n"


@pytest.mark.lab
def test_a_machine_that_answered_reboots_once_more() -> None:
    with _lab("second-reboot") as lab:
        boot_id = _boot_id(lab)
        assert _hostname(lab) == b"win1\r\n"
        lab.wait(30.0)
        assert _boot_id(lab) == boot_id
        assert lab.redfish("POST", "win1", "ForceRestart")[0] == 204
        lab.wait(30.0)
        assert _hostname(lab) == b"win1\r\n"
        assert _boot_id(lab) == boot_id + 1
        lab.wait(90.0)
        assert _hostname(lab) == b"win1\r\n"
        lab.wait(90.0)
        assert (_boot_id(lab), _hostname(lab)) == (boot_id + 2, b"win1\r\n")


def test_an_unknown_misbehaviour_is_refused() -> None:
    with pytest.raises(SpecError, match="winrmMisbehaviours"):
        LabSpec.from_json(b'{"nodes": [{"name": "a"}], "winrmMisbehaviours": ["explode"]}')
