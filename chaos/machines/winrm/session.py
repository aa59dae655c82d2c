"""Sessions over WinRM: three-valued delivery, and a deadline that holds whatever the host does."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Unreachable
from chaos.machines.sessions.arming import DeferredCommand
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.windows_command_line import CommandLine, process_command_line
from chaos.machines.winrm.client import WinRmClient
from chaos.machines.winrm.endpoint import Endpoint, LoginPause
from chaos.machines.winrm.jobs import Job
from chaos.machines.winrm.worker import WinRmWorker

_T = TypeVar("_T")
CLOSE_TIMEOUT = 2.0  # seconds for the deletion of the shell, which the host else deletes when it is idle
GRACE = 1.0  # seconds after a deadline in which the worker may end the job itself


class WinRmSession:
    """Thread safe; implements ``chaos.core.ports.Session``. Connects when first needed, and again after a loss.

    Commands run as the login user, who must be an administrator, without cmd.exe: argv[0] is a full path. A command
    without stdin gets no end of file. Commands end with the shell: what must outlive the session is for the host's task
    scheduler. Each connection over TLS must present the certificate of ``pin``; none is
    opened during a pause of ``logins``, which sessions of one account share.
    """

    def __init__(self, endpoint: Endpoint, pin: HostKeyPin | None = None, logins: LoginPause | None = None) -> None:
        self._endpoint, self._pin, self._logins = endpoint, pin or HostKeyPin(), logins or LoginPause()
        self._worker: WinRmWorker | None = None
        self._lock = Lock()

    @property
    def label(self) -> str:
        return self._endpoint.label

    def connect(self) -> None:
        """Log in and open a shell. Raises Unreachable, or Refused where the host or its settings cannot be trusted."""
        job = self._do(Job(None, self._endpoint.connect_timeout + GRACE))
        if job.error:
            raise job.error

    def client_address(self) -> str:
        """Where the host sees the connection come from. Raises Unreachable or Refused."""
        address = self._ask(lambda client, _: client.client_address)
        if not address:
            raise Unreachable(
                f"{self.label} does not report where it sees the connection come from (ClientIP)",
                hint="use transport: ssh for this host, or an action other than partition",
            )
        return address

    def service_quotas(self) -> dict[str, int]:
        """Quotas of the WinRM service by their names. Raises Unreachable or Refused."""
        return self._ask(lambda client, seconds: client.read_quotas(seconds))

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; failures are in the outcome."""
        try:
            line: CommandLine = process_command_line(command.argv)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=f"{error.message} ({error.hint})")
        job = self._do(Job(line, command.timeout, command.stdin.encode("utf-8", "surrogatepass")))
        outcome = job.wait(0)
        assert outcome is not None  # noqa: S101 - the job is over
        return outcome

    def arm(self, command: HostCommand) -> DeferredCommand:
        """Open the shell, so that a single request starts the command. Raises Unreachable or Refused."""
        process_command_line(command.argv)
        self.connect()
        return DeferredCommand(command, self.run)

    def close(self) -> None:
        """Disconnect; commands that run are lost, and end when the host deletes their idle shell."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker:
            worker.stop()
            worker.join(CLOSE_TIMEOUT)

    def _ask(self, question: Callable[[WinRmClient, float], _T]) -> _T:
        """Ask the worker's client a question, with a shell open; it gets the seconds that are left."""
        found: list[_T] = []
        timeout = self._endpoint.connect_timeout + GRACE
        job = self._do(Job(None, timeout, question=lambda client, seconds: found.append(question(client, seconds))))
        if job.error:
            raise job.error
        return found[0]

    def _do(self, job: Job) -> Job:
        """Let the worker do the job. A worker that does not answer in time is replaced."""
        with self._lock:
            worker = self._worker = self._worker or WinRmWorker(self._client, self.label)
            worker.submit(job)
        if job.wait(GRACE) is None:
            job.give_up(Unreachable(f"{self.label} did not answer within {job.timeout:g} s"))
            with self._lock:
                if self._worker is worker:
                    self._worker = None
            worker.stop()
        return job

    def _client(self) -> WinRmClient:
        return WinRmClient(self._endpoint, lambda key: self._pin.verify(key, self.label), self._logins)
