"""Sessions through a helper pod: each command is a separate exec, armed first, in the namespaces of PID 1.

A pod's name may lead to a different machine at any time, for example if its Node was recreated. Therefore each exec
reports what identifies its host before its command is released.

A session leaves nothing on the host. A command whose pod ends, as in a shutdown, is lost: whether it worked is for its
proof to say.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from time import monotonic

from chaos.cluster.api import ExecApi
from chaos.cluster.exec_stream import ExecStatus, ExecStream
from chaos.core.command import HostCommand
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import REPORT, host_key
from chaos.machines.pod.helpers import Helper, HelperPods
from chaos.machines.pod.manifest import CONTAINER, ENTER, PodOptions
from chaos.machines.sessions.arming import ArmedCommand, ArmingSession
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.process import ExitReason, Process
from chaos.machines.sessions.script import armed_argv, draw_mark

# Seconds of cluster time: a failure that took longer is that of whoever asks again within them. Otherwise each of three
# tries of each of two commands waits a minute for a pod that cannot run.
_REPEAT = 10.0
READY_TIMEOUT = 15.0  # seconds of wall time until the shell on the host is ready
_REPORT_MACHINE = f'echo "$0 shell"; {shlex.join(REPORT)}; exec "$@"'  # between the shell mark and the start mark
_PROBE = HostCommand(("true",), timeout=READY_TIMEOUT)


class HelperSlot:
    """The helper pod of one node. Thread safe. Threads wait for a pod in cluster time, so that a lab's time moves."""

    def __init__(self, node: str, pods: HelperPods, options: PodOptions) -> None:
        self.node, self._pods, self._options = node, pods, options
        self._helper: Helper | None = None
        self._failure: tuple[float, Unreachable] | None = None  # until when it counts
        self._lock = Lock()

    def get(self) -> Helper:
        """Return the pod, creating it if necessary. Raises NodefallError."""
        with self._hold():
            if self._helper is None:
                self._helper = self._create()
            return self._helper

    def _create(self) -> Helper:
        begin = self._pods.now()
        if self._failure and begin < self._failure[0]:
            former = self._failure[1]
            raise Unreachable(former.message, hint=former.hint)
        try:
            return self._pods.create(self.node, self._options)
        except Unreachable as error:
            end = self._pods.now()
            self._failure = (end + _REPEAT, error) if end - begin > _REPEAT else None
            raise

    def renew(self, failed: Helper) -> bool:
        """Whether to try a new pod after a failed exec. Raises NodefallError while this pod may recover."""
        with self._hold():
            if self._helper is not failed:
                return True
            if self._pods.is_usable(self.node, failed):
                return False
            self._helper = None
            self._pods.delete(failed)
            return True

    def kubelet_peer(self) -> dict[str, str | int]:
        """See :meth:`HelperPods.kubelet_peer`."""
        return self._pods.kubelet_peer(self.node)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        while not self._lock.acquire(blocking=False):
            if not self._pods.pause():
                raise Unreachable(f"{self.node}: its helper pod was not ready before the run stopped")
        try:
            yield
        finally:
            self._lock.release()


class ExecProcess(Process):
    """A program in a helper pod; implements ``WaitingProcess``. For one thread; any thread may call :meth:`kill`.

    The exit code is the one that the shell on the host prints: a process that the command started may have its outputs
    open for ever, and until they close the runtime reports no end.
    """

    def __init__(self, stream: ExecStream, mark: str, deadline: float) -> None:
        super().__init__(mark, deadline)
        self._stream = stream

    @property
    def status(self) -> ExecStatus | None:
        """The status that the API server reported for the end of the program."""
        return self._stream.status

    @property
    def is_running(self) -> bool:
        if not self.closed and not self._stream.has_ended:
            self._take(0.0)
        return not self.closed and not self._stream.has_ended and self._stream.status is None

    def send(self, line: str) -> None:
        """Write ``line`` immediately. Raises OSError if the connection is lost."""
        self._stream.write(line.encode())
        self._stream.flush()

    def write_stdin(self, text: str) -> None:
        """Queue ``text`` and the end of the input; it is written while output is read."""
        self._stream.write(text.encode())
        self._stream.end_input()

    def kill(self) -> None:
        """Break the stream. The command continues, unless it still waits to be released."""
        self._stream.abort()

    def close(self) -> None:
        """Break the stream and free it. Further calls do nothing."""
        if not self.closed:
            self.closed = True
            self._stream.close()

    def _step(self) -> ExitReason | None:
        """Wait for output and read it. Returns the exit reason, None while the command runs."""
        if self._stdout.is_closed and self._stderr.is_closed:
            return ExitReason.EXITED
        if self._stream.has_ended or (self._stream.status and self._stream.status.error):
            return ExitReason.LOST
        remaining = self._deadline - monotonic()
        if remaining <= 0:
            return ExitReason.TIMED_OUT
        self._take(remaining)
        return None

    def _take(self, timeout: float) -> None:
        for output, data in zip((self._stdout, self._stderr), self._stream.step(timeout), strict=True):
            if data:
                output.append(data)


class PodSession(ArmingSession):
    """Thread safe; implements ``chaos.core.ports.Session`` and ``RelayedSession``. Commands run as root.

    The pod stays when it is closed.
    """

    def __init__(
        self, slot: HelperSlot, api: ExecApi, pin: HostKeyPin | None = None, ready_timeout: float = READY_TIMEOUT
    ) -> None:
        super().__init__(pin, ready_timeout)
        self._slot, self._api = slot, api
        self._has_no_eof = False  # of an API server that speaks v4 alone

    def connect(self) -> None:
        """Create the pod and verify its host. Raises NodefallError."""
        self.arm(_PROBE).cancel()

    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused if the host has changed."""
        while True:
            helper = self._slot.get()
            try:
                return self._start(helper, command)
            except Unreachable:
                if not self._slot.renew(helper):
                    raise

    def peer(self) -> dict[str, str | int]:
        """This connection as the host sees it, as in the fact ssh-peer. Raises NodefallError."""
        return self._slot.kubelet_peer()

    def _start(self, helper: Helper, command: HostCommand) -> ArmedCommand:
        """Raises Unreachable, or Refused for another host: whatever failed, nothing has run."""
        mark = draw_mark()
        label = f"{self._slot.node} ({helper})"
        process = self._open(helper, command, mark, monotonic() + min(self._ready_timeout, command.timeout))
        version = process.await_start()
        key = host_key(process.preface, self._pin.key)
        if version is None or not key:
            why = self._why_not_ready(process)
            process.close()
            raise Unreachable(f"{label}: exec failed: {why}", hint=_hint(why))
        try:
            self._pin.verify(key, self._slot.node)
        except Refused:
            process.close()
            raise
        return self._armed(command, process, label, version)

    def _why_not_ready(self, process: ExecProcess) -> str:
        if process.has_started:
            return f"nothing identifies its host: {process.greeting or 'there is no machine ID in /etc/machine-id'}"
        status = process.status
        return (status and status.error) or process.greeting or f"no answer within {self._ready_timeout:g} s"

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
    return [*ENTER, "/bin/sh", "-c", _REPORT_MACHINE, mark, *armed_argv(argv, mark)]


def _bounded_input(command: HostCommand) -> list[str]:
    """Wrap the command so that its input has a known length: protocol v4 cannot close an input."""
    return ["sh", "-c", 'head -c "$0" | "$@"', str(len(command.stdin.encode())), *command.argv]


def _hint(why: str) -> str:
    """A hint that fits the error message of the API server or the kubelet."""
    hints: tuple[tuple[str, str], ...] = (
        ("error dialing backend", "exec goes from the API server to the kubelet: both, and port 10250, must be up"),
        ("executable file not found", "the image needs sh, sleep and nsenter: check image in the inventory"),
        ("cannot get resource", "grant the permissions that nodefall rbac --inventory FILE prints"),
        ("cannot create resource", "grant the permissions that nodefall rbac --inventory FILE prints"),
    )
    return next((hint for words, hint in hints if words in why), "")
