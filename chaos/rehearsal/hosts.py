"""Sessions and power controls on the machines of a rehearsal, by call.

A command takes the time that its program waits, and no more: connecting and logging in take none. A time-out is in
cluster time, in which the host answers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Unreachable
from chaos.lab.facade import ApiError, DirectHost, DirectLab, DirectProgram, ExecError, Machine
from chaos.machines.pod.helpers import Helper
from chaos.machines.pod.manifest import ENTER
from chaos.machines.pod.session import HelperSlot
from chaos.machines.power.redfish import RedfishControl
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.transports.docker import Container
from chaos.machines.windows_command_line import WindowsShell, normalize_line_ends, shell_command_line
from chaos.rehearsal.turns import Turns

_SUDO = ("sudo", "-n", "--")
_PROBE = HostCommand(("true",))


@dataclass(eq=False)
class _Wait:
    """A wait for the end of a program, which ends with its session, too."""

    end: Callable[[], None] = lambda: None
    is_closed: bool = False


class DirectSession:
    """Implements ``chaos.core.ports.Session``. Connects with :meth:`connect`, and again after a loss."""

    def __init__(self, host: DirectHost, pin: HostKeyPin, turns: Turns, now: Callable[[], float]) -> None:
        self._host, self._pin, self._turns, self.now = host, pin, turns, now
        self._name, self._is_windows = host.machine.name, host.machine.os == "windows"
        self._open: list[_Wait] = []

    def connect(self) -> int:
        """Verify the host. Returns the number of the boot. Raises Unreachable, Refused."""
        if not self._host.is_reachable:
            hint = "check that the host is up and that its address is right"
            raise Unreachable(f"{self._name} cannot be reached: Connection refused", hint=hint)
        self._pin.verify(self._key(), self._name)
        return self._host.boot

    def _key(self) -> str:
        """What the host presents."""
        return self._host.host_key

    def run(self, command: HostCommand) -> Outcome:
        """Run ``command`` to its end; failures are in the outcome."""
        try:
            self.connect()
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=f"{error.message} ({error.hint})" if error.hint else error.message)
        program = self._host.run(self._line(command), command.stdin)
        is_closed = not (program.task.done or program.is_lost) and self._wait(program, command.timeout)
        return self._outcome(command, program, is_closed=is_closed)

    def arm(self, command: HostCommand) -> DirectArmed:
        """``command`` as it waits on the host. Raises Unreachable."""
        return DirectArmed(self, command, self.connect())

    def close(self) -> None:
        """Disconnect. Programs that run on the host continue."""
        for wait in self._open:
            wait.is_closed = True
            wait.end()

    def is_connected(self, boot: int) -> bool:
        """Whether the machine has been reachable since that boot."""
        return self._host.is_reachable and self._host.boot == boot

    def _line(self, command: HostCommand) -> str:
        """For the login shell. Raises Refused for what cannot be sent to Windows."""
        if self._is_windows:
            return shell_command_line(command.argv, WindowsShell.CMD)
        return shlex.join((*_SUDO, *command.argv) if command.sudo else command.argv)

    def _wait(self, program: DirectProgram, seconds: float) -> bool:
        """Wait for the program's end; whether the session was closed meanwhile."""
        wait = _Wait()
        self._open.append(wait)

        def register(end: Callable[[], None]) -> None:
            wait.end = end
            program.task.add_done_callback(lambda _: end())

        try:
            self._turns.block(self.now() + seconds, register)
        finally:
            self._open.remove(wait)
        return wait.is_closed

    def _outcome(self, command: HostCommand, program: DirectProgram, *, is_closed: bool) -> Outcome:
        stdout, stderr = program.stdout, program.stderr
        if self._is_windows:
            stdout, stderr = normalize_line_ends(stdout), normalize_line_ends(stderr)
        base = Outcome(Delivery.ANSWERED, stdout=stdout, stderr=stderr)
        if program.is_lost or is_closed:
            why = f"the connection to {self._name} was lost before the command ended"
            return structs.replace(base, delivery=Delivery.LOST, error=why)
        if not program.task.done:
            why = f"no answer within {command.timeout:g} s; the command may still be running"
            return structs.replace(base, delivery=Delivery.LOST, error=why)
        return structs.replace(base, exit=program.task.result())


class DirectArmed:
    """Implements ``chaos.core.ports.Armed``: all that are released in one instant begin in it."""

    def __init__(self, session: DirectSession, command: HostCommand, boot: int) -> None:
        self._session, self._command, self._boot = session, command, boot
        self._is_over = False

    def calibrate(self, now: Callable[[], float]) -> bool:  # noqa: ARG002 - of the port
        """False: a start at a set time is not needed."""
        return False

    def release(self, at: float | None = None) -> None:
        """No-op: :meth:`wait` follows in the same instant."""

    def wait(self) -> Outcome:
        """Run the command, unless the machine went down or the command was cancelled."""
        if self._is_over or not self._session.is_connected(self._boot):
            return Outcome(Delivery.NOT_SENT, error="the command is no longer waiting on the host")
        self._is_over = True
        began = self._session.now()
        return structs.replace(self._session.run(self._command), began=began)

    def cancel(self) -> None:
        self._is_over = True


class DirectPower(RedfishControl):
    """A Redfish control whose requests are calls."""

    def __init__(self, lab: DirectLab, node: str) -> None:
        super().__init__(f"https://127.0.0.1{lab.bmc_path(node)}", {}, None, 0.0)
        self._lab = lab

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        answer = self._lab.send_to_bmc(method, path, msgspec.json.encode(body) if body else b"").result()
        return answer.status, answer.body


class DirectContainerSession(DirectSession):
    """Implements ``chaos.core.ports.Session``; the host is known by the ID of its container."""

    def _key(self) -> str:
        return f"container {container_id(self._host.machine)}"


class DirectContainer(Container):
    """A container whose engine is the lab: what ``docker`` would be asked is a call."""

    def __init__(self, lab: DirectLab, node: str) -> None:
        super().__init__(node, "docker")
        self._switch = lab.switches[node]

    def _run_engine(self, *arguments: str) -> bytes:
        match arguments[0]:
            case "inspect":
                return self._describe()
            case "start":
                self._switch.reset("On")
            case "kill":
                self._switch.reset("ForceOff")
            case _:
                raise NodefallError(f"a rehearsal has no docker {arguments[0]}")
        return b""

    def _describe(self) -> bytes:
        """What every template of ``docker inspect`` asks for."""
        machine, is_on = self._switch.machine, self._switch.state == "on"
        network = {"IPAddress": machine.address, "IPPrefixLen": 16} if is_on else {}
        state = {
            "id": container_id(machine),
            "name": f"/{self.name}",
            "hostname": self.name,
            "status": "running" if is_on else "exited",
            "policy": "no",
            "retries": 0,
            "networks": {"kind": network},
        }
        return msgspec.json.encode(state)


def container_id(machine: Machine) -> str:
    """The ID that the host reports too; of a machine that reports none, one that every boot has."""
    return machine.container_id or machine.system_uuid.replace("-", "") * 2


class DirectPodSession(DirectSession):
    """Implements ``Session`` and ``RelayedSession``; the host is known by its stable ID."""

    def __init__(
        self, lab: DirectLab, slot: HelperSlot, pin: HostKeyPin, turns: Turns, now: Callable[[], float]
    ) -> None:
        self._lab, self._slot = lab, slot
        super().__init__(lab.hosts[slot.node], pin, turns, now)

    def connect(self) -> int:
        """Verify the host. Returns the number of the boot. Raises NodefallError."""
        self._start(_PROBE)
        self._pin.verify(self._key(), self._name)
        return self._host.boot

    def _key(self) -> str:
        machine = self._host.machine
        return f"container {machine.container_id}" if machine.container_id else f"machine {machine.machine_id}"

    def peer(self) -> dict[str, str | int]:
        """See :class:`chaos.machines.pod.session.PodSession`."""
        return self._slot.kubelet_peer()

    def run(self, command: HostCommand) -> Outcome:
        """Run ``command`` to its end; failures are in the outcome."""
        try:
            self.connect()
            program = self._start(command)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=f"{error.message} ({error.hint})" if error.hint else error.message)
        is_closed = not (program.task.done or program.is_lost) and self._wait(program, command.timeout)
        return self._outcome(command, program, is_closed=is_closed)

    def _start(self, command: HostCommand) -> DirectProgram:
        while True:
            helper = self._slot.get()
            try:
                return self._exec(helper, command)
            except Unreachable:
                if not self._slot.renew(helper):
                    raise

    def _exec(self, helper: Helper, command: HostCommand) -> DirectProgram:
        try:
            return self._lab.exec(helper.namespace, helper.name, [*ENTER, *command.argv], command.stdin)
        except (ApiError, ExecError) as error:
            raise Unreachable(f"{self._name} ({helper}): exec failed: {error}") from error
