"""Block rules on a Windows node as its clients see them: new connections are not answered, open ones fall silent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.lab.conftest import Client, start, stop

pytestmark = pytest.mark.lab
NODES = [{"name": "cp", "role": "control-plane"}, {"name": "win1", "os": "windows", "bootSeconds": 10}]
ADD = "netsh.exe advfirewall firewall add rule name=t dir=in action=block protocol={}"


@pytest.fixture
def lab() -> Iterator[Client]:
    process, facts = start("--pace", "100", nodes=NODES)
    client = Client(process, facts)
    yield client
    client.close()
    stop(process)


def _is_silent(port: int) -> bool:
    """Whether a SYN is not answered."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except TimeoutError:
        return True
    return False


def test_a_block_silences_winrm_and_leaves_ssh(lab: Client) -> None:
    facts = lab.host("win1")
    ports = [urlsplit(facts["winrm"][scheme]).port or 0 for scheme in ("http", "https")]
    assert not any(_is_silent(port) for port in ports)
    assert lab.run("win1", ADD.format("tcp localport=5985-5986")).code == 0
    assert all(_is_silent(port) for port in ports)
    assert lab.run("win1", "hostname").stdout == "win1\r\n"
    assert lab.run("win1", "netsh.exe advfirewall firewall delete rule name=t").code == 0
    assert not any(_is_silent(port) for port in ports)


def test_a_block_of_ssh_ends_by_a_task(lab: Client) -> None:
    """The connection of the command that adds the rule is cut, too; its answer comes when the rule is gone."""
    later = 'schtasks /create /tn heal /ru SYSTEM /sc once /st 23:59 /f /tr "cmd /c ping -n 21 127.0.0.1 >nul & {}"'
    assert lab.run("win1", later.format("netsh advfirewall firewall delete rule name=t")).code == 0
    assert lab.run("win1", "schtasks /run /tn heal").code == 0
    before = lab.clock.now()
    with ThreadPoolExecutor(1) as pool:
        added = pool.submit(lab.run, "win1", ADD.format("any"))
        while not added.done():
            lab.wait(1.0)
    assert added.result().stdout == "Ok.\r\n\r\n"
    assert 15.0 <= lab.clock.now() - before <= 40.0
