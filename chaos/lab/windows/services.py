"""Service control manager of one Windows machine: states, dependencies, and the order of a shutdown.

Pre-shutdown notice: one service after the other, each up to its time-out. Then the shutdown notice, to all together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from chaos.lab.rules.node import WindowsRules
from chaos.lab.sim import SimClock, Timer
from chaos.lab.windows.disk import CONTROL, SERVICES, WindowsRegistry

STOPPED, START_PENDING, STOP_PENDING, RUNNING = 1, 2, 3, 4
STATE_NAMES = {1: "STOPPED", 2: "START_PENDING", 3: "STOP_PENDING", 4: "RUNNING"}
NEVER_STARTED = 1077
DEPENDENTS_RUNNING, INVALID_CONTROL, ALREADY_RUNNING, DISABLED = 1051, 1052, 1056, 1058
UNKNOWN_SERVICE, CANNOT_ACCEPT, NOT_STARTED = 1060, 1061, 1062
_START_TIME, _STOP_TIME = 0.2, 0.3  # invented: seconds of an ordinary service
_DEFAULT_WAIT_TO_KILL_MS = 5_000
StartType = Literal["auto", "delayed-auto", "demand", "disabled"]


class ServiceError(Exception):
    """A control that the manager refuses, with its Win32 error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Win32 error {code}")
        self.code = code


@dataclass(slots=True, eq=False)
class Service:
    """One service. ``own_process`` is false for one in a shared process.

    ``is_triggered``: started on demand, by a trigger that fires at each boot.
    ``on_start``, ``on_stop``: run what the service is. ``on_preshutdown``: its handler, which calls its argument once
    at the end; without one the service stops at once. ``restart_after``: seconds after its process died, None for no
    failure action.
    """

    name: str
    display_name: str
    binary: str
    accepts: frozenset[str] = frozenset({"STOP", "SHUTDOWN"})
    depends: tuple[str, ...] = ()
    start_type: StartType = "auto"
    own_process: bool = False
    is_triggered: bool = False
    restart_after: float | None = None
    stop_seconds: float = _STOP_TIME
    on_start: Callable[[], None] = lambda: None
    on_stop: Callable[[], None] = lambda: None
    on_preshutdown: Callable[[Callable[[], None]], None] | None = None
    state: int = STOPPED
    exit_code: int = NEVER_STARTED
    pid: int = 0
    timer: Timer | None = field(default=None)

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING

    @property
    def starts_at_boot(self) -> bool:
        """Whether a boot starts it, at once or later."""
        return self.start_type in ("auto", "delayed-auto") or (self.is_triggered and self.start_type == "demand")


class ServiceManager:
    """Services by name, which ignores case. ``on_change``: called with a service whose state has changed."""

    def __init__(self, sim: SimClock, registry: WindowsRegistry, rules: WindowsRules) -> None:
        self._sim, self._registry, self._rules = sim, registry, rules
        self._services: dict[str, Service] = {}
        self._pids = 600
        self._timers: list[Timer] = []
        self.on_change: list[Callable[[Service], None]] = []
        self.is_shutting_down = False

    def add(self, service: Service) -> None:
        """Install a service."""
        self._services[service.name.lower()] = service
        key = f"{SERVICES}\\{service.name}"
        self._registry.set(key, "ImagePath", "REG_EXPAND_SZ", service.binary)
        if service.depends:
            self._registry.set(key, "DependOnService", "REG_MULTI_SZ", service.depends)

    def get(self, name: str) -> Service:
        """Find a service. Raises ServiceError."""
        if (found := self._services.get(name.lower())) is None:
            raise ServiceError(UNKNOWN_SERVICE)
        return found

    def all(self) -> list[Service]:
        return sorted(self._services.values(), key=lambda item: item.name.lower())

    def dependents(self, service: Service) -> list[Service]:
        """Services that need this one."""
        name = service.name.lower()
        return [item for item in self._services.values() if name in [other.lower() for other in item.depends]]

    def start(self, service: Service) -> None:
        """Accept a start; the service runs a little later. Raises ServiceError."""
        if service.state != STOPPED:
            raise ServiceError(ALREADY_RUNNING)
        if service.start_type == "disabled":
            raise ServiceError(DISABLED)
        if self.is_shutting_down:
            raise ServiceError(1115)
        for name in service.depends:
            needed = self.get(name)
            if needed.state == STOPPED:
                self.start(needed)
        self._set(service, START_PENDING)
        service.timer = self._after(_START_TIME, self._run, service)

    def start_at_boot(self, delayed: bool) -> None:
        """Start every automatic service that is stopped, those with delayed start or the others."""
        for service in self.all():
            is_delayed = service.start_type == "delayed-auto"
            if service.starts_at_boot and is_delayed is delayed and service.state == STOPPED:
                self.start(service)

    def run_at_once(self, service: Service) -> None:
        """Start without delay, when a lab starts."""
        self._run(service)

    def stop(self, service: Service) -> None:
        """Accept a stop; the service is stopped a little later. Raises ServiceError."""
        if service.state == STOPPED:
            raise ServiceError(NOT_STARTED)
        if service.state != RUNNING:
            raise ServiceError(CANNOT_ACCEPT)
        if any(item.state != STOPPED for item in self.dependents(service)):
            raise ServiceError(DEPENDENTS_RUNNING)
        if "STOP" not in service.accepts:
            raise ServiceError(INVALID_CONTROL)
        self._set(service, STOP_PENDING)
        service.timer = self._after(service.stop_seconds, self._end, service)

    def kill(self, service: Service) -> None:
        """Note that the process has died: the failure action starts it again."""
        if service.state == STOPPED:
            return
        service.exit_code, service.pid = 1067, 0
        self._set(service, STOPPED)
        delay = service.restart_after
        if delay is not None:
            self._after(delay, self._restart, service)

    def preshutdown_timeout(self, service: Service) -> float:
        """Seconds that the manager waits for a service after the pre-shutdown notice."""
        milliseconds = self._registry.number(f"{SERVICES}\\{service.name}", "PreshutdownTimeout")
        return self._rules.default_preshutdown_timeout if milliseconds is None else milliseconds / 1000

    def set_preshutdown_timeout(self, service: Service, milliseconds: int) -> None:
        """ChangeServiceConfig2 with SERVICE_CONFIG_PRESHUTDOWN_INFO."""
        self._registry.set(f"{SERVICES}\\{service.name}", "PreshutdownTimeout", "REG_DWORD", milliseconds)

    def shut_down(self, done: Callable[[], None]) -> None:
        """Stop all services in the two steps of a shutdown, and call ``done``."""
        self.is_shutting_down = True
        order = [name.lower() for name in self._registry.strings(CONTROL, "PreshutdownOrder") or ()]
        waiting = [item for item in self.all() if item.is_running and "PRESHUTDOWN" in item.accepts]
        # invented: services that PreshutdownOrder does not name come last, by name
        waiting.sort(key=lambda item: order.index(item.name.lower()) if item.name.lower() in order else len(order))
        self._next_preshutdown(waiting, done)

    def lose_power(self) -> None:
        """All processes are gone."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self.is_shutting_down = False
        for service in self._services.values():
            service.state, service.exit_code, service.pid, service.timer = STOPPED, NEVER_STARTED, 0, None
            for call in self.on_change:
                call(service)

    def _next_preshutdown(self, waiting: list[Service], done: Callable[[], None]) -> None:
        if not waiting:
            self._shutdown_notice(done)
            return
        service, rest = waiting[0], waiting[1:]
        self._set(service, STOP_PENDING)
        once = _Once(partial(self._next_preshutdown, rest, done))
        if self._rules.limits_preshutdown:
            self._after(self.preshutdown_timeout(service), once)
        if service.on_preshutdown is None:
            self._after(service.stop_seconds, self._preshutdown_ends, service, once)
        else:
            service.on_preshutdown(partial(self._preshutdown_ends, service, once))

    def _preshutdown_ends(self, service: Service, once: _Once) -> None:
        """Set the state STOPPED. The process itself continues until the machine is off."""
        if service.state == STOP_PENDING:
            service.exit_code = 0
            self._set(service, STOPPED)
        once()

    def _shutdown_notice(self, done: Callable[[], None]) -> None:
        notified = [item for item in self.all() if item.is_running and "SHUTDOWN" in item.accepts]
        for service in notified:
            self._set(service, STOP_PENDING)
            self._after(service.stop_seconds, self._end, service)
        limit = self._registry.text(CONTROL, "WaitToKillServiceTimeout")
        longest = (int(limit) if limit.isdecimal() else _DEFAULT_WAIT_TO_KILL_MS) / 1000
        self._after(min(longest, max((item.stop_seconds for item in notified), default=0.0)), done)

    def _run(self, service: Service) -> None:
        self._pids += 4
        service.pid, service.exit_code = self._pids, 0
        self._set(service, RUNNING)
        service.on_start()

    def _restart(self, service: Service) -> None:
        if service.state == STOPPED and not self.is_shutting_down:
            self.start(service)

    def _end(self, service: Service) -> None:
        if service.state == STOP_PENDING:
            service.pid, service.exit_code = 0, 0
            self._set(service, STOPPED)
            service.on_stop()

    def _set(self, service: Service, state: int) -> None:
        service.state = state
        for call in self.on_change:
            call(service)

    def _after(self, delay: float, call: Callable[..., None], *args: object) -> Timer:
        self._timers = [timer for timer in self._timers if timer.due >= self._sim.now and not timer.cancelled]
        timer = self._sim.after(delay, call, *args)
        self._timers.append(timer)
        return timer


class _Once:
    """A callback that runs the first time only."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()
