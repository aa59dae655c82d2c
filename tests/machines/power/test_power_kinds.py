"""What is special to each power control, and its errors."""

from __future__ import annotations

import os
import pty
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.ports import ON, ON_OFF, ON_OFF_STATE
from chaos.machines.local import SecretContext
from chaos.machines.power.command import CommandControl, CommandPower, make_command_control
from chaos.machines.power.ipmi import IpmiControl, make_ipmi_control
from chaos.machines.power.manual import ManualControl, ManualPower, make_manual_control
from chaos.machines.power.redfish import make_redfish_control
from chaos.machines.power.wake_on_lan import WakeOnLanPower, magic_packet, make_wake_on_lan_control
from tests.kit.bmcs import PASSWORD, PLACE, fake_bmc, ipmi_power, sushy, sushy_power
from tests.kit.processes import free_port

IPMITOOL = pytest.mark.skipif(not shutil.which("ipmitool"), reason="ipmitool is not installed")
WRONG = SecretContext({"BMC": "hunter2-secret"}, Path("/nowhere"))


def programs(**changes: Any) -> CommandControl:
    fields = {"kind": "command", "on": ["true"], "status": ["true"], "isOn": {"exit": [0]}, "isOff": {"exit": [1]}}
    return make_command_control(CommandPower.model_validate(fields | changes), PLACE)


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


@IPMITOOL
def test_ipmi_names_the_rejected_login_without_the_password(tmp_path: Path) -> None:
    with fake_bmc(tmp_path) as good:
        assert isinstance(good, IpmiControl)
        for context, user, why in ((WRONG, "admin", "the password is wrong$"), (PLACE, "stranger", "")):
            with pytest.raises(Unreachable, match=f"rejected the login of {user}: {why}") as caught:
                make_ipmi_control(ipmi_power(good._power.port, user), context, timeout=60).on()
            assert "hunter2" not in str(caught.value) + caught.value.hint
        assert good.state() == "off"


@IPMITOOL
def test_ipmi_without_a_server() -> None:
    with pytest.raises(NodefallError, match=r"IPMI at 127\.0\.0\.1:\d+|ipmitool did not end"):
        make_ipmi_control(ipmi_power(free_port(kind=socket.SOCK_DGRAM)), PLACE, timeout=15).state()


def ipmitool(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> IpmiControl:
    """A program of that name that records its arguments and password."""
    program = folder / "ipmitool"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/argv; echo "$IPMI_PASSWORD" > {folder}/env\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return make_ipmi_control(ipmi_power(623), PLACE, timeout=2 if "sleep" in script else 20)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo Chassis Power is unknown", "reports neither on nor off"),
        ("true", "reports neither on nor off: exit code 0"),
        ("echo Insufficient privilege level >&2; exit 1", "answered to status: Insufficient privilege level"),
        ("echo Unable to establish LAN session >&2; exit 1", "rejected the login of admin"),
        (f"echo bad login {PASSWORD} >&2; exit 1", r"answered to status: bad login \*\*\*"),
        ("exec sleep 20", "did not end in 2 s"),
    ],
)
def test_errors_of_ipmitool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: str) -> None:
    with pytest.raises(NodefallError, match=error) as caught:
        ipmitool(tmp_path, script, monkeypatch).state()
    assert caught.value.hint


def test_the_password_is_on_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = ipmitool(tmp_path, "echo Chassis Power is on", monkeypatch)
    control.on()
    control.off()
    control.soft_off()
    argv = (tmp_path / "argv").read_text()
    assert [line.split()[-1] for line in argv.splitlines()] == ["on", "status", "off", "soft"]
    assert PASSWORD not in argv
    assert " -E " in argv
    assert (tmp_path / "env").read_text() == f"{PASSWORD}\n"


def test_ipmitool_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="ipmitool cannot be run: No such file") as caught:
        make_ipmi_control(ipmi_power(623), PLACE).on()
    assert caught.value.hint == "install ipmitool"


def test_redfish_rejects_a_wrong_password(tmp_path: Path) -> None:
    with sushy(tmp_path) as good:
        port = good._url.port  # type: ignore[attr-defined]
        with pytest.raises(NodefallError, match="answered 401") as caught:
            make_redfish_control(sushy_power(port), WRONG).on()
        assert "hunter2" not in str(caught.value) + caught.value.hint
        assert good.state() == "off"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"status": shell("exit 0")}, "on"),
        ({"status": shell("exit 1")}, "off"),
        ({"status": shell("exit 2")}, "neither isOn nor isOff matches .exit code 2"),
        ({"isOff": {"exit": [0]}}, "isOn and isOff both match"),
        ({"status": shell("echo state: UP"), "isOn": {"output": "UP$"}, "isOff": {"output": "DOWN$"}}, "on"),
        ({"status": shell("echo state: DOWN"), "isOn": {"output": "UP$"}, "isOff": {"output": "DOWN$"}}, "off"),
        ({"status": shell("echo UP; exit 1"), "isOn": {"exit": [0], "output": "UP"}, "isOff": {"output": "DOWN"}},
         "neither"),
        ({"status": shell("sleep 20"), "timeout": "500ms"}, "did not end in 0.5 s"),
        ({"status": ["yes"]}, "yes printed more than 4096 KiB and was stopped"),
        ({"status": ["no-such-program"]}, "no-such-program cannot be run"),
    ],
)  # fmt: skip
def test_state_from_a_program(changes: dict[str, Any], state: str) -> None:
    if state in ("on", "off"):
        assert programs(**changes).state() == state
    else:
        with pytest.raises(NodefallError, match=state) as caught:
            programs(**changes).state()
        assert caught.value.hint


def test_programs_get_secrets_that_no_error_shows() -> None:
    fields = {"environment": {"TOKEN": {"env": "BMC"}}, "status": shell('test "$TOKEN" = password')}
    assert programs(**fields).state() == "on"
    with pytest.raises(NodefallError, match=r"exit code 7: denied: \*\*\*$"):
        programs(**fields, on=shell('echo "denied: $TOKEN" >&2; exit 7')).on()


def test_programs_that_cannot_power_off() -> None:
    assert programs().capabilities == ON_OFF_STATE - {"off"}
    with pytest.raises(NodefallError, match="no command for off"):
        programs().off()


def test_arguments_see_no_shell(tmp_path: Path) -> None:
    programs(on=["touch", f"{tmp_path}/a b;c"]).on()
    assert [p.name for p in tmp_path.iterdir()] == ["a b;c"]


@pytest.mark.parametrize("mac", ["52:54:00:12:34:56", "52-54-00-12-34-56", "525400123456"])
def test_a_magic_packet_is_sent(mac: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(10)
        fields = {"kind": "wake-on-lan", "mac": mac, "broadcast": "127.0.0.1", "port": card.getsockname()[1]}
        control = make_wake_on_lan_control(WakeOnLanPower.model_validate(fields))
        control.on()
        assert card.recv(1000) == b"\xff" * 6 + bytes.fromhex("525400123456") * 16 == magic_packet(mac)
    assert control.capabilities == ON


def test_wake_on_lan_neither_reads_the_state_nor_cuts_power() -> None:
    control = make_wake_on_lan_control(
        WakeOnLanPower(kind="wake-on-lan", mac="52:54:00:12:34:56", broadcast="no address")
    )
    with pytest.raises(NodefallError, match="cannot read it"):
        control.state()
    with pytest.raises(Refused, match="cannot cut power"):
        control.off()
    with pytest.raises(Unreachable, match="magic packet could not be sent to no address"):
        control.on()


class Person:
    """A person at a real pseudo-terminal, who types one answer for each prompt."""

    def __init__(self, *answers: str) -> None:
        self._end, self._terminal = pty.openpty()
        self.path = os.ttyname(self._terminal)
        self.prompts = ""
        self._thread = threading.Thread(target=self._type, args=(answers,), daemon=True)
        self._thread.start()

    def _type(self, answers: tuple[str, ...]) -> None:
        for answer in answers:
            seen = ""
            while "type no: " not in seen:
                seen += os.read(self._end, 4096).decode()
            self.prompts += seen
            os.write(self._end, f"{answer}\n".encode())

    def control(self, deadline: str = "20s") -> ManualControl:
        return make_manual_control(ManualPower(kind="manual", deadline=deadline), "worker-1", self.path)


def test_the_prompt_reveals_the_state_off_only() -> None:
    person = Person("what?", "off", " ON ")
    control = person.control()
    assert control.capabilities == ON_OFF
    with pytest.raises(NodefallError, match="is unknown"):
        control.state()
    control.off()
    assert control.state() == "off"
    control.on()
    assert person.prompts.count("Cut the power of worker-1") == 2
    assert "Power worker-1 ON" in person.prompts
    with pytest.raises(NodefallError, match="is unknown"):  # it may go down by itself
        control.state()


def test_a_person_may_give_up() -> None:
    with pytest.raises(NodefallError, match="the operator answered no"):
        Person("no").control().on()


def test_no_answer_on_the_terminal() -> None:
    with pytest.raises(NodefallError, match=r"no answer on the terminal within 0\.3 s"):
        Person().control("300ms").off()


def test_there_is_no_terminal(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no terminal") as caught:
        make_manual_control(ManualPower(kind="manual"), "worker-1", str(tmp_path / "tty"))
    assert caught.value.hint
