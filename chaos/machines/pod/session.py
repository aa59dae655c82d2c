"""Sessions through a helper pod: each command is a separate exec, armed first, in the namespaces of PID 1.

Behind the name of a pod may be another machine at any time, as where a Node was made again under its name. So each exec
reports what identifies its host before its command is released.

Nothing of a session is on the host. A command whose pod ends, as at a shutdown, is lost: whether it worked is for its
proof to say.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from threading import Lock
from time import monotonic

from chaos.cluster.api import ExecApi
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.stable_id import REPORT, host_key
from chaos.machines.host_key_pin import HostKeyPin
from chaos.machines.pod.helpers import Helper
from chaos.machines.pod.manifest import CONTAINER, ENTER
from chaos.machines.pod.process import ExecProcess
from chaos.machines.pod.slot import HelperSlot
from chaos.machines.transports.armed_exec import ArmedExec
from chaos.machines.transports.host_clock import HostClock
from chaos.machines.transports.script import exit_code_argv, has_host_clock, is_ready

READY_TIMEOUT = 15.0  # seconds of wall time until the shell on the host is ready
_REPORT_MACHINE = f'{shlex.join(REPORT)}; echo; exec "$@"'  # the empty line ends the report
_PROBE = HostCommand(("true",), timeout=READY_TIMEOUT)


class PodSession:
    """Thread safe; implements ``chaos.core.ports.Session`` and ``RelayedSession``. Commands run as root."""

    def __init__(
        self, slot: HelperSlot, api: ExecApi, pin: HostKeyPin | None = None, ready_timeout: float = READY_TIMEOUT
    ) -> None:
        self._slot, self._api, self._pin, self._ready_timeout = slot, api, pin or HostKeyPin(), ready_timeout
        self._has_no_eof = False  # of an API server that speaks v4 alone
        self._processes: list[ExecProcess] = []
        self._lock = Lock()

    def connect(self) -> None:
        """Make the pod, and verify its host. Raises NodefallError."""
        self.arm(_PROBE).cancel()

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; failures are in the outcome."""
        try:
            armed = self.arm(command)
        except NodefallError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Outcome(Delivery.NOT_SENT, error=f"{error.message}{hint}")
        return armed.wait()

    def arm(self, command: HostCommand) -> ArmedExec:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused for another host than before."""
        while True:
            helper = self._slot.get()
            try:
                return self._start(helper, command)
            except Unreachable:
                if not self._slot.renew(helper):
                    raise

    def close(self) -> None:
        """Disconnect. Commands that run on the host go on; armed ones end without running. The pod stays."""
        with self._lock:
            for process in self._processes:
                process.kill()

    def peer(self) -> dict[str, str | int]:
        """What the host sees of this connection, as the fact ssh-peer has it. Raises NodefallError."""
        return self._slot.kubelet_peer()

    def _start(self, helper: Helper, command: HostCommand) -> ArmedExec:
        """Raises Unreachable, or Refused for another host: whatever failed, nothing has run."""
        mark = f"nodefall-{secrets.token_hex(8)}"
        label = f"{self._slot.node} ({helper})"
        process = self._open(helper, command, mark, monotonic() + min(self._ready_timeout, command.timeout))
        report = _read_report(process)
        key, first_line = host_key(report, self._pin.key), process.read_line()
        if not is_ready(first_line) or not key:
            why = self._why_not_ready(process, report, first_line)
            process.close()
            raise Unreachable(f"{label}: exec failed: {why}", hint=_hint(why))
        try:
            self._pin.verify(key, self._slot.node)
        except Refused:
            process.close()
            raise
        with self._lock:
            self._processes = [each for each in self._processes if not each.closed] + [process]
        return ArmedExec(command, process, HostClock(has_host_clock(first_line)), label)

    def _why_not_ready(self, process: ExecProcess, report: str, first_line: str | None) -> str:
        if is_ready(first_line):
            seen = process.stderr.strip() or "there is no machine ID in /etc/machine-id"
            return f"nothing identifies its host: {seen}"
        status, output = process.status, process.stderr.strip() or (first_line or report).strip()
        return (status and status.error) or output or f"no answer within {self._ready_timeout:g} s"

    def _open(self, helper: Helper, command: HostCommand, mark: str, deadline: float) -> ExecProcess:
        argv = _bounded_input(command) if self._has_no_eof else command.argv
        try:
            stream = self._api.exec(helper.path, _argv(argv, mark), CONTAINER, max(deadline - monotonic(), 1.0))
        except NodefallError as error:
            message = f"{self._slot.node} ({helper}): {error.message}"
            raise Unreachable(message, hint=error.hint or _hint(error.message)) from error
        if not stream.can_end_input and not self._has_no_eof:
            stream.close()  # nothing has run: the shell waits for a line
            self._has_no_eof = True
            return self._open(helper, command, mark, deadline)
        return ExecProcess(stream, mark, deadline)


def _argv(argv: Sequence[str], mark: str) -> list[str]:
    """The armed ``argv`` on the host, after the report of what identifies it."""
    return [*ENTER, "sh", "-c", _REPORT_MACHINE, "nodefall", *exit_code_argv(argv, mark)]


def _read_report(process: ExecProcess) -> str:
    """The lines before the first empty one, or before the program ends or times out."""
    lines = []
    while (line := process.read_line()) is not None and line.strip():
        lines.append(line)
    return "\n".join(lines)


def _bounded_input(command: HostCommand) -> list[str]:
    """The command with an input of known length: v4 cannot end one."""
    return ["sh", "-c", 'head -c "$0" | "$@"', str(len(command.stdin.encode())), *command.argv]


def _hint(why: str) -> str:
    """What may help, by the words of the API server and the kubelet."""
    hints: tuple[tuple[str, str], ...] = (
        ("error dialing backend", "exec goes from the API server to the kubelet: both, and port 10250, must be up"),
        ("executable file not found", "the image needs sh, sleep and nsenter: check image in the inventory"),
        ("cannot get resource", "grant the permissions that nodefall rbac --inventory FILE prints"),
        ("cannot create resource", "grant the permissions that nodefall rbac --inventory FILE prints"),
    )
    return next((hint for words, hint in hints if words in why), "")
