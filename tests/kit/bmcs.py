"""Real BMCs for tests, each a process: sushy-tools' Redfish emulator and pyghmi's fake BMC."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bcrypt

from chaos.core.errors import NodefallError
from chaos.core.ports import PowerControl
from chaos.machines.local import SecretContext
from chaos.machines.power.ipmi import IpmiPower, make_ipmi_control
from chaos.machines.power.redfish import RedfishPower, make_redfish_control
from tests.kit.processes import free_port

SYSTEM = "27946b59-9e44-4fa7-8e91-f3527a1ef094"  # of the fake driver
PASSWORD = "password"  # pyghmi's own
_QUICK_SUSHY = (  # its fake machines take a random time of 1 to 11 s
    "import random; random.randint = lambda low, high: low\nfrom sushy_tools.emulator.main import main; main()"
)
PLACE = SecretContext({"BMC": PASSWORD}, Path("/nowhere"))


def within(seconds: float, holds: Callable[[], bool], what: str) -> None:
    """Wait until ``holds`` is true. A control that raises NodefallError is polled again."""
    tick = threading.Event()
    for _ in range(int(seconds / 0.1)):
        try:
            if holds():
                return
        except NodefallError:
            pass
        tick.wait(0.1)
    raise AssertionError(f"waited {seconds:g} s for {what}")


@contextmanager
def _process(argv: list[str], control: PowerControl, log: Path) -> Iterator[PowerControl]:
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out) as process:
        try:
            within(60, lambda: control.state() in ("on", "off"), f"the server of {log.name} to answer")
            yield control
        finally:
            process.terminate()


@contextmanager
def sushy(folder: Path) -> Iterator[PowerControl]:
    """Redfish with a login, on loopback. Its machine takes up to a second to change its state."""
    port = free_port()
    (folder / "users").write_text(f"admin:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    (folder / "sushy.conf").write_text(
        f"SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\n"
        f"SUSHY_EMULATOR_LISTEN_PORT = {port}\nSUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n"
        f"SUSHY_EMULATOR_AUTH_FILE = {str(folder / 'users')!r}\n"
    )
    argv = [sys.executable, "-c", _QUICK_SUSHY, "--config", str(folder / "sushy.conf")]
    with _process(argv, make_redfish_control(sushy_power(port), PLACE), folder / "sushy.log") as control:
        yield control


def sushy_power(port: int) -> RedfishPower:
    url = f"http://127.0.0.1:{port}/redfish/v1/Systems/{SYSTEM}"
    return RedfishPower.model_validate({"kind": "redfish", "url": url, "user": "admin", "password": {"env": "BMC"}})


@contextmanager
def fake_bmc(folder: Path) -> Iterator[PowerControl]:
    """IPMI 2.0 over UDP."""
    port = free_port(kind=socket.SOCK_DGRAM)
    argv = [sys.executable, "-m", "pyghmi.cmd.fakebmc", "--port", str(port)]
    with _process(argv, make_ipmi_control(ipmi_power(port), PLACE), folder / "bmc.log") as control:
        yield control


def ipmi_power(port: int, user: str = "admin") -> IpmiPower:
    return IpmiPower.model_validate(
        {"kind": "ipmi", "address": "127.0.0.1", "port": port, "user": user, "password": {"env": "BMC"}}
    )
