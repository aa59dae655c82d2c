"""The WS-Management service of one machine: Create, Command, Send, Receive, Signal, Delete, and Get of winrm/config."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from chaos.lab.winrm import faults
from chaos.lab.winrm.faults import CMD, CONFIG, SHELL, TRANSFER
from chaos.lab.winrm.shells import MAX_CMD_LINE, RemoteShell, RunningCommand
from chaos.lab.winrm.soap import (
    GET,
    IDLE_TIMEOUT,
    RECEIVE,
    SHORT,
    EnvelopeError,
    Formatter,
    Request,
    WinRmConfig,
    parse_duration,
    parse_request,
)
from chaos.lab.winshell.process import ProgramNotFoundError, WinHost, WinProcess, find_program, launch, run_line

_SHELL_ELEMENTS = (
    *("InputStreams", "OutputStreams", "Environment", "IdleTimeOut", "Lifetime", "Name", "WorkingDirectory"),
    "MaxIdleTimeOut",
)
ShellLine = Callable[[WinProcess, str], Awaitable[int]]
_ENDED_BY_CTRL_C = f"{SHELL}/signal/ctrl_c"


@dataclass(frozen=True, slots=True)
class Client:
    """Who sends a request: user without domain, address, and the host by which the client calls the machine."""

    user: str
    address: str
    host: str


class WsmanService:
    """Shells by ID. They are lost when the service stops, with all commands in them. ``run_shell_line``: cmd.exe."""

    def __init__(self, host: WinHost, run_shell_line: ShellLine = run_line) -> None:
        self._host, self._run_shell_line = host, run_shell_line
        self.config = WinRmConfig()
        self._formatter = Formatter(host.sim.rng)
        self._shells: dict[str, RemoteShell] = {}
        self._operations: dict[str, Callable[[Request, Client], Awaitable[str]]] = {
            f"{TRANSFER}/Create": self._create,
            f"{TRANSFER}/Delete": self._delete,
            f"{TRANSFER}/Get": self._get,
            f"{SHELL}/Command": self._command,
            f"{SHELL}/Send": self._send,
            f"{SHELL}/Receive": self._receive,
            f"{SHELL}/Signal": self._signal,
        }

    def stop(self) -> None:
        """End all shells."""
        for shell in self._shells.values():
            shell.close()
        self._shells.clear()

    async def handle(self, data: bytes, client: Client) -> tuple[int, str]:
        """Answer one envelope. Returns HTTP status and body."""
        message_id = ""
        try:
            request, header_fault = parse_request(data)
            message_id = request.message_id
            if header_fault is not None:
                raise header_fault
            operation = self._operations.get(request.action)
            if operation is None or request.resource not in (CMD, SHELL, CONFIG):
                raise faults.unknown_resource(request.resource)
            return 200, await operation(request, client)
        except EnvelopeError as error:
            return 500, self._formatter.fault(message_id, client.host, faults.malformed(str(error)))
        except faults.Fault as fault:
            return 500, self._formatter.fault(message_id, client.host, fault)

    async def _create(self, request: Request, client: Client) -> str:
        if sum(item.owner == client.user for item in self._shells.values()) >= self.config.max_shells_per_user:
            raise faults.too_many_shells(self.config.max_shells_per_user)
        wanted = request.body.find(f"{{{SHELL}}}Shell")
        if wanted is None:
            raise faults.bad_parameter()
        _check_children(wanted, _SHELL_ELEMENTS)
        shell = self._new_shell(request, wanted, client)
        self._shells[shell.id] = shell
        self._touch(shell)
        body = (
            f"<x:ResourceCreated><a:Address>{escape(request.to)}</a:Address><a:ReferenceParameters><w:ResourceURI>"
            f'{escape(request.resource)}</w:ResourceURI><w:SelectorSet><w:Selector Name="ShellId">{shell.id}'
            "</w:Selector></w:SelectorSet></a:ReferenceParameters></x:ResourceCreated>"
        )
        return self._formatter.answer(request, f"{TRANSFER}/CreateResponse", body + shell.described(request.resource))

    def _new_shell(self, request: Request, wanted: ElementTree.Element, client: Client) -> RemoteShell:
        variables = [(item.get("Name", ""), item.text or "") for item in wanted.iter(f"{{{SHELL}}}Variable")]
        idle = wanted.findtext(f"{{{SHELL}}}IdleTimeOut")
        seconds = parse_duration(idle) if idle else IDLE_TIMEOUT
        if seconds is None:
            raise faults.bad_parameter()
        return RemoteShell(
            self._formatter.new_id(),
            client.user,
            client.address,
            [(name.replace("\\", ""), value) for name, value in variables],  # Windows' own echo loses the backslash
            wanted.findtext(f"{{{SHELL}}}WorkingDirectory") or "",
            seconds,
            "utf-8" if request.options.get("WINRS_CODEPAGE") == "65001" else "cp437",
            wanted.findtext(f"{{{SHELL}}}InputStreams") or "stdin",
            wanted.findtext(f"{{{SHELL}}}OutputStreams") or "stdout stderr",
        )

    async def _command(self, request: Request, client: Client) -> str:
        shell = self._shell(request)
        used = sum(item.operations for item in self._shells.values() if item.owner == client.user)
        if used >= self.config.max_operations_per_user:
            raise faults.too_many_operations(self.config.max_operations_per_user)
        line = request.body.find(f"{{{SHELL}}}CommandLine")
        if line is None:
            raise faults.bad_parameter()
        _check_children(line, ("Command", "Arguments"))
        name = (line.findtext(f"{{{SHELL}}}Command") or "").strip()
        arguments = " ".join(item.text or "" for item in line.iterfind(f"{{{SHELL}}}Arguments"))
        command = RunningCommand(self._formatter.new_id(), shell.encoding, self._host.waits)
        run = self._program(shell, command, name, arguments, skip_cmd=request.option("WINRS_SKIP_CMD_SHELL"))
        shell.commands[command.id] = command
        shell.operations += 1
        command.start(run)
        self._touch(shell)
        body = f"<rsp:CommandResponse><rsp:CommandId>{command.id}</rsp:CommandId></rsp:CommandResponse>"
        return self._formatter.answer(request, f"{SHELL}/CommandResponse", body)

    def _program(
        self, shell: RemoteShell, command: RunningCommand, name: str, arguments: str, *, skip_cmd: bool
    ) -> Callable[[], Awaitable[int]]:
        """What runs the command: cmd.exe, or the program itself, which must then be a full path. Raises Fault."""
        process = self._process(shell, command)
        text = f"{name} {arguments}".rstrip()
        if not skip_cmd:
            if len(text) > MAX_CMD_LINE:
                raise faults.line_too_long()
            return lambda: self._run_shell_line(process, text)
        path = name.strip('"')
        try:
            find_program(self._host.programs, path, by_name=False)
        except ProgramNotFoundError as error:
            raise faults.program_not_found() from error
        return lambda: launch(process, f'"{path}" {arguments}', by_name=False)

    def _process(self, shell: RemoteShell, command: RunningCommand) -> WinProcess:
        return WinProcess(
            self._host,
            f"{self._host.machine.computer}\\{shell.owner}",
            lambda text: command.write("stdout", text),
            lambda text: command.write("stderr", text),
            command.read_line,
        )

    async def _send(self, request: Request, _: Client) -> str:
        shell = self._shell(request)
        for stream in request.body.iter(f"{{{SHELL}}}Stream"):
            command = _find_command(shell, stream.get("CommandId"))
            try:
                data = base64.b64decode("".join((stream.text or "").split()), validate=True)
            except binascii.Error as error:
                raise faults.bad_parameter() from error
            command.feed(data, ends=stream.get("End", "").lower() in ("true", "1"))
        self._touch(shell)
        return self._formatter.answer(request, f"{SHELL}/SendResponse", "<rsp:SendResponse/>")

    async def _receive(self, request: Request, _: Client) -> str:
        shell = self._shell(request)
        wanted = request.body.find(f".//{{{SHELL}}}DesiredStream")
        if wanted is None or wanted.get("CommandId") is None:
            raise faults.bad_parameter()
        command = _find_command(shell, wanted.get("CommandId"))
        await self._wait(command.changed, self._host.sim.now + request.timeout)
        if not command.chunks and command.exit_code is None:
            raise faults.timed_out()
        self._touch(shell)
        body = command.received((wanted.text or "stdout stderr").split())
        return self._formatter.answer(request, f"{SHELL}/ReceiveResponse", body, RECEIVE)

    async def _wait(self, event: asyncio.Event, until: float) -> None:
        """Wait for the event, at most until a simulated time."""
        if event.is_set():
            return
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._host.waits.wait_until(until)), loop.create_task(_until_set(event))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _signal(self, request: Request, _: Client) -> str:
        shell = self._shell(request)
        signal = request.body.find(f"{{{SHELL}}}Signal")
        if signal is None:
            raise faults.bad_parameter()
        command = _find_command(shell, signal.get("CommandId"))
        code = (signal.findtext(f"{{{SHELL}}}Code") or "").strip()
        command.terminate()
        if code == _ENDED_BY_CTRL_C:
            shell.operations -= 1  # "terminate" leaves the operation counted until the shell is deleted
        del shell.commands[command.id]
        self._touch(shell)
        return self._formatter.answer(request, f"{SHELL}/SignalResponse", "<rsp:SignalResponse/>")

    async def _delete(self, request: Request, _: Client) -> str:
        shell = self._shell(request)
        self._remove(shell)
        return self._formatter.answer(request, f"{TRANSFER}/DeleteResponse", "", SHORT)

    async def _get(self, request: Request, _: Client) -> str:
        if request.resource == CONFIG:
            return self._formatter.answer(request, f"{TRANSFER}/GetResponse", self.config.document(), GET)
        raise faults.no_such_shell_to_get()  # no recording of one that is there

    def _shell(self, request: Request) -> RemoteShell:
        identity = request.selectors.get("ShellId", "")
        shell = self._shells.get(identity.upper())
        if shell is None:
            raise faults.no_such_shell(identity)
        return shell

    def _touch(self, shell: RemoteShell) -> None:
        """Restart the idle time-out."""
        if shell.idle_timer is not None:
            shell.idle_timer.cancel()
        shell.idle_timer = self._host.sim.after(shell.idle_timeout, self._remove, shell)

    def _remove(self, shell: RemoteShell) -> None:
        shell.close()
        self._shells.pop(shell.id, None)


async def _until_set(event: asyncio.Event) -> None:
    await event.wait()


def _find_command(shell: RemoteShell, identity: str | None) -> RunningCommand:
    """Raises Fault."""
    if identity is None:
        raise faults.bad_parameter()
    command = shell.commands.get(identity.upper())
    if command is None:
        raise faults.no_such_command()
    return command


def _check_children(element: ElementTree.Element, known: tuple[str, ...]) -> None:
    """Raises Fault for an element that the shell does not know."""
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name not in known:
            raise faults.bad_element(name)
