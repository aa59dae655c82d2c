"""Ports to the outside world, implemented by kube, hosts, observers, engine and store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from chaos.core.command import HostCommand, Outcome, PowerCapability, PowerState
from chaos.core.history import Entry
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.core.recording import RecordingEntry
from chaos.core.result import Judgement, RunResult
from chaos.core.threads import Threads
from chaos.core.verdict import Verdict

Sink = Callable[[RecordingEntry], None]
# Capabilities of a PowerControl.
ON_OFF_STATE = frozenset({PowerCapability.ON, PowerCapability.OFF, PowerCapability.STATE})
ALL_CAPABILITIES = ON_OFF_STATE | {PowerCapability.SOFT_OFF}
ON_OFF = frozenset({PowerCapability.ON, PowerCapability.OFF})
ON = frozenset({PowerCapability.ON})


class Clock(Protocol):
    """The only source of now() and sleep(). Times are seconds since the epoch, in cluster time."""

    @property
    def threads(self) -> Threads:
        """The threads that may sleep on this clock."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> bool:
        """Sleep. Returns False if woken early because the run stops."""

    def gather(self) -> None:
        """Let the events of a busy stream gather for some milliseconds, unless time is simulated."""

    def settle(self) -> bool:
        """Wait until this process has done all that needs no time, and return True; False where time does not wait."""

    def wake(self) -> None:
        """End every sleep, present and future, until :meth:`resume`."""

    def resume(self) -> None: ...


class Armed(Protocol):
    """A command that is ready on its host and starts on a single write."""

    def calibrate(self, now: Callable[[], float]) -> bool:
        """Measure the offset of the host's clock from ``now``. Returns whether a start at a set time is possible."""

    def release(self, at: float | None = None) -> None:
        """Start the command with one write, without waiting. Errors are reported by :meth:`wait`.

        ``at``: earliest start, shortly ahead, by the clock of :meth:`calibrate`; ignored without a calibration.
        """

    def wait(self) -> Outcome:
        """Start the command unless :meth:`release` did, and wait for its end. ``began`` is the host's time of start."""

    def cancel(self) -> None:
        """End the command without running it."""


class Session(Protocol):
    """A connection to one host. It reconnects after a loss; only commands that were not sent are retried."""

    def run(self, command: HostCommand) -> Outcome: ...

    def arm(self, command: HostCommand) -> Armed: ...

    def close(self) -> None: ...


@runtime_checkable
class ServiceSession(Protocol):
    """A session by a service of the host that reports what no program there can read. Raises NodefallError."""

    def client_address(self) -> str:
        """Where the host sees the connection come from; "" for a transport whose programs see it themselves."""

    def service_quotas(self) -> dict[str, int]:
        """Limits of the service by name; {} for a transport without such."""


@runtime_checkable
class RelayedSession(Protocol):
    """A session through an engine or a pod of nodefall, which connects with each command. Raises NodefallError."""

    def connect(self) -> None:
        """Verify the host, whose key is known from then on."""

    def peer(self) -> dict[str, str | int]:
        """The connection as the host sees it, as in the fact ssh-peer; {} if the transport does not need it."""


class PowerControl(Protocol):
    """Power control of a machine. Every method raises NodefallError on failure."""

    @property
    def capabilities(self) -> frozenset[PowerCapability]:
        """The capabilities of the power control, which may depend on the settings of the machine. Raises
        NodefallError.
        """

    def state(self) -> PowerState:
        """The state as reported, never guessed."""

    def on(self) -> None: ...

    def off(self) -> None:
        """Cut the power immediately, without a shutdown."""


@runtime_checkable
class SoftOffControl(Protocol):
    """A power control that can ask a machine to shut down, as its power button does. Raises NodefallError."""

    def soft_off(self) -> None:
        """Ask once, of a machine that is on; whether it shuts down is for its operating system."""


@runtime_checkable
class StopProgress(Protocol):
    """A power control that shows a stop which was accepted and is not over. Raises NodefallError."""

    def is_stopping(self) -> bool:
        """Whether the machine is to go off without another command; its ``state`` is ``on`` until then."""


@runtime_checkable
class RestartPolicyControl(Protocol):
    """A power control of machines that may start without a command, as containers with a restart policy do."""

    def restart_policy(self) -> str:
        """The policy as docker writes it: ``no``, ``always``, ``on-failure:1``..."""

    def set_restart_policy(self, policy: str) -> None: ...


@runtime_checkable
class MachineIdentity(Protocol):
    """A power control that knows which machine it switches."""

    def identity(self) -> PowerIdentity:
        """The identity of the machine that it switches. Raises NodefallError if the control does not answer."""


@runtime_checkable
class MachineRisks(Protocol):
    """A power control of machines that their provider may replace, terminate or not start again."""

    def risks(self) -> tuple[PowerRisk, ...]:
        """Why the machine must not go down now. Raises NodefallError if the control does not answer."""


@runtime_checkable
class MachineAddresses(Protocol):
    """A power control for machines whose addresses may change with a start, like containers."""

    def interfaces(self) -> tuple[str, ...]:
        """The present addresses with their networks, as ``172.18.0.5/16``; none while the machine is off.

        Raises NodefallError if the control does not answer.
        """


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str]


class RequestApi(Protocol):
    """Requests to one API server. Raises KubeUnreachable (kube.errors) without a response."""

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        """One request and its response, of any status."""


class KubeApi(RequestApi, Protocol):
    """Raw access to one API server. Raises KubeUnreachable without a response."""

    def stream(self, path: str, query: Mapping[str, str]) -> AbstractContextManager[Iterator[bytes]]:
        """A watch: chunks of bytes as they arrive."""

    def kubelet(self, address: str, port: int, path: str) -> Response:
        """GET from the port of a kubelet, with the credentials of the cluster."""


class LockGuard(Protocol):
    """The cluster's lock, checked before each operation of a run.

    ``renew`` and ``check`` raise Aborted, and always do once the lock was lost. ``loss`` is why it was lost, or "".
    """

    @property
    def loss(self) -> str: ...

    def renew(self) -> bool:
        """Renew the lock on the API server. Returns False if the server does not answer."""

    def check(self) -> None:
        """Check the lock by the local clock, right before an operation."""

    def blocked(self) -> str:
        """Why nothing may be undone now, as another process has the lock, or ""."""

    def regain(self, pause: Callable[[], object]) -> str:
        """Wait for a lost lock and acquire it again for the undo. Returns why that failed, or ""."""


class Progress(Protocol):
    """Progress of a live run, for people; ``tick`` passes the cluster time.

    ``verdict`` is called once a verdict is decided, and is not called for what may still be lost, as a recovery.
    """

    def phase(self, name: str) -> None: ...

    def step(self, name: str, node: str, what: str) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...

    def note(self, text: str) -> None: ...

    def tick(self, now: float) -> None: ...


@runtime_checkable
class JudgementDisplay(Protocol):
    """A Progress that shows more than changes: it takes every judgement of a live run, from the run's thread."""

    def judged(self, judgement: Judgement) -> None: ...


class RunWatcher(Protocol):
    """Is shown a run while it goes on, from any of its threads. Every method returns at once and raises nothing."""

    def begin(self, targets: Mapping[str, tuple[str, ...]], stop: Callable[[], None] | None) -> None:
        """Before the first side effect: the nodes by target, and what stops the run as the first Ctrl-C does.

        ``stop`` is None where there is nothing to stop; it may be called from any thread.
        """

    def entry(self, entry: Entry) -> None:
        """An entry of the timeline, in their order."""

    def steady(self, verdicts: tuple[Verdict, ...]) -> None:
        """The steady state at this moment, before the first step."""

    def judged(self, result: RunResult) -> None:
        """All verdicts at this moment. Verdicts that are not final are pending."""


class Observer(Protocol):
    """A source of recording entries, emitted from its threads between start and stop; has no access to the plan."""

    name: str

    def start(self, sink: Sink) -> None: ...

    def stop(self) -> None: ...

    def has_synced(self) -> bool:
        """Whether the initial state was observed completely."""
