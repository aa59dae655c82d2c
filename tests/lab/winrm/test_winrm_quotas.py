"""Quotas and time-outs of the lab's WinRM, and what ends with a shell."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from chaos.core.windows import system_program
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.winrm.service import Client, WsmanService
from chaos.lab.winshell.process import WinHost
from chaos.lab.winshell.programs import PROGRAMS
from tests.kit.win_host import WindowsHost, script_line
from tests.kit.winrm_exchanges import load, namespaces, read, shape

CREATE, COMMAND, RECEIVE, SIGNAL, DELETE = (item.request for item in load("winrs_standard.yml"))
_SHELL, _COMMAND = "4283CBDC-3706-415B-88BD-B385F3E51A53", "CF84C20A-0A35-43FA-AF78-0B4711DA5F30"
_CLIENT = Client("Administrator", "127.0.0.1", "win1")


class Session:
    """The service of one node, in one event loop; simulated time moves by ``wait`` only."""

    def __init__(self, host: WindowsHost) -> None:
        self.host = host
        self.service = WsmanService(WinHost(host.machine, host.sim, Lockstep(host.sim), PROGRAMS))

    async def send(self, request: str, shell: str = "", command: str = "") -> tuple[int, str]:
        data = request.replace(_SHELL, shell or _SHELL).replace(_COMMAND, command or _COMMAND)
        return await self.service.handle(data.encode(), _CLIENT)

    async def create(self, **more: str) -> str:
        request = CREATE
        for name, value in more.items():
            request = request.replace("</rsp:Shell>", f"<rsp:{name}>{value}</rsp:{name}></rsp:Shell>")
        status, answer = await self.send(request)
        assert status == 200
        return _id("ShellId", answer)

    async def command(self, shell: str, line: str = "hostname.exe") -> str:
        request = re.sub(r"<rsp:Arguments>[^<]*</rsp:Arguments>", "", COMMAND)
        status, answer = await self.send(request.replace(">cmd.exe<", f">{line}<"), shell)
        assert status == 200
        await asyncio.sleep(0.01)
        return _id("CommandId", answer)


def _id(name: str, answer: str) -> str:
    match = re.search(rf"{name}>([0-9A-F-]{{36}})<", answer)
    assert match
    return match[1]


def _play(scene: Callable[[Session], Awaitable[None]]) -> None:
    async def play() -> None:
        session = Session(WindowsHost())
        try:
            await scene(session)
        finally:
            session.service.stop()

    asyncio.run(play())


def _code(answer: tuple[int, str]) -> int:
    status, text = answer
    match = re.search(r' Code="(\d+)"|error_Code[^>]*>(\d+)<', text)
    assert status == 500
    assert match
    return int(match[1] or match[2])


def _body(xml: str) -> Any:
    return shape(xml, None)[3][1]


def test_too_many_shells_have_the_recorded_fault() -> None:
    async def scene(session: Session) -> None:
        session.service.config.max_shells_per_user = 30
        shells = [await session.create() for _ in range(30)]
        answer = await session.send(CREATE)
        recorded = read("faults/winrb_wmi_error_v2.xml")
        assert _code(answer) == 2150859173
        assert "RelatesTo" not in answer[1]
        assert set(namespaces(answer[1])) == set(namespaces(recorded))
        assert _body(answer[1]) == _body(recorded)
        assert (await session.send(DELETE, shells[0]))[0] == 200
        await session.create()

    _play(scene)


def test_terminate_leaves_an_operation_counted_and_ctrl_c_does_not() -> None:
    async def scene(session: Session) -> None:
        session.service.config.max_operations_per_user = 3
        terminate = SIGNAL.replace("signal/ctrl_c", "signal/terminate")
        shell = await session.create()
        for signal in (SIGNAL, SIGNAL, SIGNAL, terminate, terminate, terminate):
            assert (await session.send(signal, shell, await session.command(shell)))[0] == 200
        answer = await session.send(COMMAND, shell)
        assert _code(answer) == 2150859174
        recorded = read("faults/pywinrm_unit_wmierror_2150859174.xml")
        assert [item[0] for item in _elements(_body(answer[1]))] == [item[0] for item in _elements(_body(recorded))]
        other = await session.create()
        assert _code(await session.send(COMMAND, other)) == 2150859174  # the quota is the user's
        await session.send(DELETE, shell)
        await session.command(other)

    _play(scene)


def _elements(part: Any) -> list[Any]:
    return [part, *(item for child in part[3] for item in _elements(child))]


def test_an_idle_shell_is_deleted() -> None:
    async def scene(session: Session) -> None:
        shell = await session.create(IdleTimeOut="PT60S")
        session.host.wait(50.0)
        await session.command(shell)
        session.host.wait(50.0)
        await session.command(shell)
        session.host.wait(61.0)
        assert _code(await session.send(COMMAND, shell)) == 2150858843

    _play(scene)


def test_what_runs_in_a_shell_ends_with_it() -> None:
    async def scene(session: Session) -> None:
        shell = await session.create()
        shut_down = {"program": system_program("shutdown"), "arguments": ["/s"], "task": "none"}
        late = script_line("failsafe-run", wait=10, **shut_down)
        command = await session.command(shell, late)
        await session.send(DELETE, shell)
        for _ in range(20):
            session.host.wait(1.0)
            await asyncio.sleep(0.001)
        assert session.host.machine.power.scheduled is None
        assert _code(await session.send(RECEIVE, shell, command)) == 2150858843
        other = await session.create()
        await session.command(other, late)
        for _ in range(20):
            session.host.wait(1.0)
            await asyncio.sleep(0.001)
        assert session.host.machine.power.scheduled is not None

    _play(scene)


def test_a_command_ends_by_a_signal() -> None:
    async def scene(session: Session) -> None:
        shell = await session.create()
        wait = {"program": system_program("hostname"), "arguments": [], "task": "none"}
        command = await session.command(shell, script_line("failsafe-run", wait=1000, **wait))
        assert (await session.send(SIGNAL, shell, command))[0] == 200
        assert _code(await session.send(RECEIVE, shell, command)) == 2150858843
        assert _code(await session.send(SIGNAL, shell, command)) == 2150858843

    _play(scene)
