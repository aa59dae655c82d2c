"""Block rules on a Windows node as its clients see them: new connections are not answered, open ones fall silent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from chaos.core.windows import powershell
from chaos.machines.windows_command_line import WindowsShell, shell_command_line
from tests.lab.conftest import Client, start, stop

pytestmark = pytest.mark.lab
NODES = [{"name": "cp", "role": "control-plane"}, {"name": "win1", "os": "windows", "bootSeconds": 10}]
ADD = "netsh.exe advfirewall firewall add rule name=t dir=in action=block profile=any protocol=any enable=yes"
# After 20 s of uptime; the rule of the same name is then gone.
_WORDS = powershell("failsafe-delete-rules", rule="t")
HEAL = powershell("failsafe-run", wait=20, program=_WORDS[0], arguments=_WORDS[1:], task="heal")
TASK = (
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task"><Actions><Exec><Command>'
    f"{HEAL[0]}</Command><Arguments>{' '.join(HEAL[1:])}</Arguments></Exec></Actions></Task>"
)


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


def test_a_block_ends_by_a_task(lab: Client) -> None:
    """The connection of the command that adds the rule is cut, too; its answer comes when the rule is gone."""
    facts = lab.host("win1")
    port = urlsplit(facts["winrm"]["https"]).port or 0
    assert not _is_silent(port)
    register = shell_command_line(powershell("register-task", task="heal"), WindowsShell.CMD)
    assert lab.run("win1", register, TASK).code == 0
    assert lab.run("win1", "schtasks /run /tn heal").code == 0
    before = lab.clock.now()
    with ThreadPoolExecutor(1) as pool:
        added = pool.submit(lab.run, "win1", ADD)
        lab.wait(5.0)
        assert _is_silent(port)
        while not added.done():
            lab.wait(1.0)
    assert added.result().stdout == "Ok.\r\n\r\n"
    assert 15.0 <= lab.clock.now() - before <= 40.0
    assert not _is_silent(port)
