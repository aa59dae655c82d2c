"""Hand-written stand-ins for the engine's ports: a clock that only sleeps move, hosts that are a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from chaos.cluster.lease_lock import Identity
from chaos.core.command import Delivery, HostCommand, Outcome, PowerState
from chaos.core.errors import NodefallError
from chaos.core.ports import ON_OFF_STATE, Armed, Response
from chaos.core.threads import SYSTEM_THREADS
from chaos.core.verdict import Verdict


class FakeClock:
    """Time moves when somebody sleeps; ``at`` runs things on the way."""

    threads = SYSTEM_THREADS

    def __init__(self) -> None:
        self.t = 1000.0
        self.agenda: list[tuple[float, Callable[[], None]]] = []
        self.slept = 0.0

    def now(self) -> float:
        return self.t

    def sleep(self, seconds: float) -> bool:
        self.t += seconds
        self.slept += seconds
        for due, call in [a for a in self.agenda if a[0] <= self.t]:
            self.agenda.remove((due, call))
            call()
        return True

    def gather(self) -> None:
        return None

    def settle(self) -> bool:
        return False

    def wake(self) -> None:
        raise AssertionError("not used here")

    def resume(self) -> None:
        return None


class FakeSession:
    """Answers by command line; what is not in the table is lost."""

    def __init__(self, answers: dict[str, Outcome | Callable[[], Outcome]]) -> None:
        self.answers = answers
        self.sent: list[str] = []

    def run(self, command: HostCommand) -> Outcome:
        self.sent.append(str(command))
        answer = self.answers.get(str(command), Outcome(Delivery.LOST, error="connection lost"))
        return answer if isinstance(answer, Outcome) else answer()

    def arm(self, command: HostCommand) -> Armed:
        raise AssertionError("not used here")

    def close(self) -> None:
        self.sent.append("close")


class FakePower:
    capabilities = ON_OFF_STATE

    def __init__(self, state: str = "on", broken: bool = False) -> None:
        self.value, self.broken = state, broken

    def state(self) -> PowerState:
        if self.broken:
            raise NodefallError("the BMC does not answer")
        return PowerState(self.value)

    def on(self) -> None:
        self.state()
        self.value = "on"

    def off(self) -> None:
        self.state()
        self.value = "off"


class FakeKube:
    """Answers by path; 404 otherwise."""

    def __init__(self, answers: dict[str, Response]) -> None:
        self.answers = answers
        self.sent: list[tuple[str, str]] = []

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        self.sent.append((method, path))
        return self.answer(method, path, body)

    def answer(self, method: str, path: str, body: Any) -> Response:
        """For those who keep what is written."""
        return self.answers.get(path, Response(404, b'{"message": "not found"}', {}))

    def stream(self, path: str, query: Mapping[str, str]) -> AbstractContextManager[Iterator[bytes]]:
        raise AssertionError("not used here")

    def kubelet(self, address: str, port: int, path: str) -> Response:
        raise AssertionError("not used here")


class FakeGuard:
    """A lock without a competitor."""

    loss = ""
    namespace = "kube-system"

    def __init__(self) -> None:
        self.identity = Identity("me", {})

    def renew(self) -> bool:
        return True

    def check(self) -> None:
        return None

    def blocked(self) -> str:
        return ""

    def regain(self, pause: Callable[[], object]) -> str:
        return ""


class FakeProgress:
    def __init__(self) -> None:
        self.reports: list[str] = []

    def phase(self, name: str) -> None:
        self.reports.append(f"phase {name}")

    def step(self, name: str, node: str, what: str) -> None:
        self.reports.append(f"{name} on {node}: {what}")

    def verdict(self, verdict: Verdict) -> None:
        self.reports.append(f"{verdict.name}: {verdict.status}")

    def note(self, text: str) -> None:
        self.reports.append(text)

    def tick(self, now: float) -> None:
        return None


def answered(stdout: str = "", exit_code: int = 0, stderr: str = "") -> Outcome:
    return Outcome(Delivery.ANSWERED, exit_code, stdout, stderr)
