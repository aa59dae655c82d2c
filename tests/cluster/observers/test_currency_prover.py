"""When the watches of a run are proven current."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

import pytest

from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.observers.currency_prover import CPU_SHARE, REPLAY_PERIOD, CurrencyProver
from chaos.cluster.observers.currency_schedule import IDLE_PERIOD
from chaos.core.recording import LAG_BOUND
from chaos.rehearsal.turns import Turns
from tests.kit.misbehaving import Lines
from tests.kit.turn_clock import Gate, TurnClock


class CostlyTurns(Turns):
    """Turns in which proofs use CPU time, as the test says."""

    cpu = 0.0

    def cpu_time(self) -> float:
        return self.cpu


class CostlyClock(TurnClock):
    def __init__(self) -> None:
        super().__init__()
        self.threads: CostlyTurns = CostlyTurns(self._sim)


class FakeWatch:
    """Current whenever it is asked, unless it is late or refused."""

    def __init__(self, name: str, clock: CostlyClock) -> None:
        self.name, self._clock = name, clock
        self.is_watching = True
        self.current_until = self.complete_until = 0.0
        self.replays: list[float] = []
        self.versions: list[float] = []
        self.cost = 0.0  # CPU seconds of a proof
        self.answering = Gate(clock)  # closed: a replay takes until it is opened
        self.answers = Gate(clock)  # closed: so does each read
        self._replayed_until = 0.0
        self.proofs: list[float] = []
        self.late = False
        self.error: KubeRejected | KubeUnreachable | None = None

    def prove_currency(self) -> None:
        now = self._clock.now()
        self.proofs.append(now)
        self.answers.wait()
        self._clock.threads.cpu += self.cost
        if self.error:
            raise self.error
        if not self.late:
            self.current_until, self.complete_until = now, self._replayed_until

    def note_version(self) -> None:
        self.versions.append(self._clock.now())
        self.answers.wait()

    def replay(self) -> None:
        now = self._clock.now()
        self.replays.append(now)
        self.answering.wait()
        if self.error:
            raise self.error
        self._replayed_until = now


Made = tuple[CurrencyProver, FakeWatch, FakeWatch, CostlyClock]


@pytest.fixture
def made() -> Iterator[Made]:
    clock = CostlyClock()
    nodes, jobs = FakeWatch("nodes", clock), FakeWatch("jobs", clock)
    prover = CurrencyProver([nodes, jobs], {"nodes"}, clock)
    prover.start(Lines())
    yield prover, nodes, jobs, clock
    prover.stop()
    clock.close()


def final_sample(prover: CurrencyProver, clock: CostlyClock) -> list[float]:
    """When the final sample has ended, once it has."""
    ended: list[float] = []

    def sample() -> None:
        prover.final_sample()
        ended.append(clock.now())

    clock.threads.thread(sample, "sample").start()
    return ended


def test_what_is_relevant_is_proven_more_often(made: Made) -> None:
    _, nodes, jobs, clock = made
    clock.advance_to(1000 + 2 * IDLE_PERIOD)
    assert len(nodes.proofs) > 5 * len(jobs.proofs) > 0


def test_proofs_that_cost_much_are_rare_and_versions_are_noted_between_them(made: Made) -> None:
    _, nodes, _, clock = made
    nodes.cost = CPU_SHARE * 5
    clock.advance_to(1040)
    assert len(nodes.proofs) < 15
    assert len(nodes.proofs) + len(nodes.versions) > 30


NAMES = ("nodes", "pods", "deployments", "leases", "jobs")


@pytest.fixture
def five() -> Iterator[tuple[CurrencyProver, list[FakeWatch], CostlyClock]]:
    """Five watches, all relevant."""
    clock = CostlyClock()
    watches = [FakeWatch(name, clock) for name in NAMES]
    prover = CurrencyProver(watches, NAMES, clock)
    prover.start(Lines())
    yield prover, watches, clock
    prover.stop()
    clock.close()


def test_relevant_watches_take_turns(five: tuple[CurrencyProver, list[FakeWatch], CostlyClock]) -> None:
    prover, watches, clock = five
    clock.advance_to(1010)
    prover.prove_at([clock.now()])
    clock.advance_to(1050)
    times = [sorted([*watch.proofs, *watch.versions]) for watch in watches]
    assert all(8 <= len(each) <= 14 for each in times)
    reads = sorted(t for each in times for t in each)
    gaps = [after - before for before, after in pairwise(reads)]
    assert median(gaps) < 1.5, "one of them each second"


def test_relevant_watches_of_a_slow_server_take_no_turns(
    five: tuple[CurrencyProver, list[FakeWatch], CostlyClock],
) -> None:
    _, watches, clock = five
    watches[0].answers.close()
    clock.until(lambda: bool(watches[0].proofs))
    clock.advance(20)
    assert all(len(watch.proofs) + len(watch.versions) >= 10 for watch in watches)
    watches[0].answers.open()


def test_what_is_relevant_is_replayed_now_and_then(made: Made) -> None:
    _, nodes, jobs, clock = made
    clock.advance_to(1000 + 5 * REPLAY_PERIOD)
    assert 4 <= len(nodes.replays) <= 6
    assert jobs.replays == []


def test_a_replay_that_is_wanted_while_another_is_under_way_follows_it(made: Made) -> None:
    prover, nodes, _, clock = made
    clock.until(lambda: len(nodes.replays) == 1)
    nodes.answering.close()
    clock.advance(1)
    prover.prove_now()
    clock.until(lambda: len(nodes.replays) == 2)
    prover.prove_now()
    prover.prove_now()
    assert len(nodes.replays) == 2
    nodes.answering.open()
    clock.until(lambda: len(nodes.replays) == 3)


def test_a_watch_that_is_not_open_is_not_proven(made: Made) -> None:
    _, nodes, jobs, clock = made
    jobs.is_watching = False
    before = len(jobs.proofs)
    clock.advance_to(1030)
    assert len(jobs.proofs) <= before + 1
    assert nodes.proofs


def test_a_proof_at_a_moment(made: Made) -> None:
    prover, nodes, _, clock = made
    clock.until(lambda: bool(nodes.proofs))
    prover.prove_at([1000.6])
    clock.advance(0.5)
    clock.until(lambda: any(1000.6 <= t < 1000.95 for t in nodes.proofs))


def test_of_a_slow_server_more_is_read_when_it_matters(made: Made) -> None:
    prover, nodes, _, clock = made
    clock.advance_to(1005)
    prover.prove_at([clock.now()])
    clock.until(lambda: len(nodes.proofs) > 5)
    assert nodes.versions == [], "a quick one is not"
    nodes.answers.close()
    answered = len(nodes.proofs)
    clock.until(lambda: len(nodes.proofs) > answered + 4)
    prover.prove_at([clock.now()])
    clock.until(lambda: len(nodes.versions) >= 10)
    before = len(nodes.versions)
    with prover.watch_closely():
        clock.advance(2.5)
        assert len(nodes.versions) > before
    nodes.answers.open()


def test_of_many_reads_only_some_are_under_way(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others follow, unless the run has ended by then."""
    monkeypatch.setattr("chaos.cluster.observers.currency_prover._MAX_WORKERS", 3)
    prover, nodes, _, clock = made
    nodes.answers.close()
    before = len(nodes.proofs)
    clock.advance_to(1010)
    prover.prove_at([clock.now()])
    assert len(nodes.proofs) + len(nodes.versions) <= before + 3
    before = len(nodes.proofs) + len(nodes.versions)
    nodes.answers.open()
    clock.until(lambda: len(nodes.proofs) + len(nodes.versions) > before + 5)
    nodes.answers.close()
    clock.advance_to(1025)
    prover.stop()
    before = len(nodes.proofs) + len(nodes.versions)
    nodes.answers.open()
    clock.advance(10)
    assert len(nodes.proofs) + len(nodes.versions) == before


def test_a_proof_at_once(made: Made) -> None:
    prover, nodes, _, clock = made
    clock.advance(0.05)
    begin = clock.now()
    prover.prove_now()
    assert nodes.current_until >= begin


def test_a_proof_at_once_is_not_waited_for_long(made: Made) -> None:
    prover, nodes, _, clock = made
    nodes.late = True
    begin = clock.now()
    prover.prove_now()
    assert clock.now() <= begin + 0.5


def test_before_the_judgement_what_is_late_is_waited_for(made: Made) -> None:
    prover, nodes, jobs, clock = made
    nodes.late = True
    clock.advance(5)
    began = clock.now()
    ended = final_sample(prover, clock)
    clock.advance_to(began + 10)
    assert ended == []
    nodes.late = False
    clock.until(lambda: bool(ended))
    assert nodes.complete_until >= began
    assert jobs.current_until >= began


class BookmarkedWatch(FakeWatch):
    """A replay of it ends with a bookmark, unless it is late."""

    def replay(self) -> None:
        super().replay()
        self.complete_until = self.complete_until if self.late else self.replays[-1]


@pytest.mark.parametrize("late", [set(), {"nodes"}, {"nodes", "pods"}])
def test_a_wait_before_the_judgement_says_what_for(late: set[str]) -> None:
    clock, notes = CostlyClock(), list[str]()
    watches = [BookmarkedWatch(name, clock) for name in ("pods", "nodes", "jobs")]
    prover = CurrencyProver(watches, {"nodes", "pods"}, clock, notes.append)
    prover.start(Lines())
    clock.advance(5)
    for watch in watches:
        watch.late = watch.name in late | {"jobs"}  # what nothing asks about is not waited for
    ended = final_sample(prover, clock)
    clock.until(lambda: bool(ended or notes))
    clock.until(lambda: bool(ended))
    prover.stop()
    clock.close()
    names = ", ".join(sorted(late))
    assert notes == ([f"waiting up to 60 s until the watches of {names} have received all changes"] if late else [])


def test_what_never_comes_is_waited_for_in_vain_only_so_long(made: Made) -> None:
    prover, nodes, jobs, clock = made
    nodes.late = True
    jobs.error = KubeRejected(403, "jobs is forbidden")
    clock.advance(5)
    began = clock.now()
    ended = final_sample(prover, clock)
    clock.until(lambda: bool(ended))
    assert LAG_BOUND <= ended[0] - began < LAG_BOUND + 10


def test_a_server_that_is_gone_is_not_requested_at_every_tick_before_the_judgement(made: Made) -> None:
    prover, nodes, jobs, clock = made
    nodes.error = jobs.error = KubeUnreachable("refused", "connection refused")
    clock.advance(5)
    nodes.proofs, nodes.replays, nodes.versions = [], [], []
    ended = final_sample(prover, clock)
    clock.until(lambda: bool(ended))
    assert LAG_BOUND / 10 < len(nodes.replays) < LAG_BOUND
    assert LAG_BOUND / 10 < len(nodes.proofs) + len(nodes.versions) < LAG_BOUND * 2
