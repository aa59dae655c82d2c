"""The cluster's lock: never two that act, in any interleaving of processes that renew, stop, die and take over."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.cluster.lease import (
    LEASE_DURATION,
    MAX_DURATION,
    RENEW_DEADLINE,
    RETRY_PERIOD,
    Decision,
    Leadership,
    LeaseRecord,
    ObservedLease,
    decide,
    lease_body,
    next_fence,
    observe,
    parse,
)

EXAMPLES = int(os.environ.get("NODEFALL_INTERLEAVINGS", "1500"))  # .ci/nightly: 10,000
STEPS = 150
WAITS = (
    0.1,
    0.1,
    0.1,
    0.1,
    1.0,
    1.0,
    1.0,
    1.0,
    RETRY_PERIOD,
    RENEW_DEADLINE - 0.1,
    RENEW_DEADLINE,
    LEASE_DURATION - 0.1,
    LEASE_DURATION + 0.1,
    100.0,
)


@dataclass
class Server:
    """An API server that stores one Lease, and writes only over the version that the writer has read."""

    record: LeaseRecord | None = None
    version: int = 0

    def write(self, over: LeaseRecord | None, holder: str, fence: int) -> bool:
        if (over.version if over else "") != (self.record.version if self.record else ""):
            return False
        self.version += 1
        self.record = LeaseRecord(str(self.version), holder, fence)
        return True


@dataclass
class Process:
    """Its requests may take any time: they are begun, done by the server, and answered, in separate steps."""

    name: str
    seen: LeaseRecord | None = None
    has_read: bool = False
    watched: ObservedLease | None = None
    tenure: Leadership | None = None
    begun: float | None = None
    over: LeaseRecord | None = None  # what its request was made for
    answer: tuple[bool, int] | None = None


@dataclass
class Play:
    """Processes that do one thing each at a time in any order; one that is stopped does nothing meanwhile.

    ``acts`` and ``counts_from_answer`` break the rules, to see that it is noticed.
    """

    random: Random
    acts: float = RENEW_DEADLINE
    counts_from_answer: bool = False
    now: float = 0.0
    server: Server = field(default_factory=Server)
    processes: list[Process] = field(default_factory=lambda: [Process(f"p{number}") for number in range(3)])
    did: Counter[str] = field(default_factory=Counter)

    def step(self) -> None:
        if self.random.random() < 0.08:
            self.now += self.random.choice(WAITS)
            return
        number = self.random.randrange(len(self.processes))
        process = self.processes[number]
        (todo,) = self.random.choices(
            [self.read, self.want, self.renew, self.arrive, self.hear, self.act, self.end, self.crash],
            [6, 6, 4, 8, 8, 6, 0.2, 0.2],
        )
        todo(process)

    def read(self, process: Process) -> None:
        process.seen, process.has_read = self.server.record, True
        if process.seen and process.seen.holder:
            process.watched = observe(process.seen, process.watched, self.now)

    def want(self, process: Process) -> None:
        """Request the lock with the record that was read, maybe long ago."""
        if process.tenure or process.begun is not None or not process.has_read:
            return
        if decide(process.seen, process.watched, self.now) is Decision.ACQUIRE:
            process.begun, process.over = self.now, process.seen

    def renew(self, process: Process) -> None:
        if process.tenure and process.begun is None and process.tenure.is_held(self.server.record):
            process.over, process.begun = self.server.record, self.now

    def arrive(self, process: Process) -> None:
        """The server executes the request."""
        if process.begun is None or process.answer is not None:
            return
        over = process.over
        fence = process.tenure.fence if process.tenure else (over.fence if over else 0) + 1
        done = self.server.write(over, process.name, fence)
        process.answer = (done, fence)
        if done and over and over.holder != process.name:
            self.did["taken over"] += 1

    def hear(self, process: Process) -> None:
        """The answer comes; what was begun counts from then on."""
        if process.answer is None or process.begun is None:
            return
        (done, fence), begun = process.answer, process.begun
        process.answer = process.begun = None
        if done:
            process.tenure = Leadership(process.name, fence, self.now if self.counts_from_answer else begun)

    def act(self, process: Process) -> None:
        """The check right before the operation uses the holder's clock alone."""
        if process.tenure and self.now - process.tenure.renewed_at < self.acts:
            assert process.tenure.is_valid(self.now) or self.acts != RENEW_DEADLINE
            self.did["acted"] += 1
            if not process.tenure.is_held(self.server.record):
                self.did["two at once"] += 1

    def end(self, process: Process) -> None:
        if process.tenure and process.begun is None and process.tenure.is_held(self.server.record):
            self.server.record = None
            self._restart(process)

    def crash(self, process: Process) -> None:
        """Its requests were either executed or lost; the new process has a new name."""
        self._restart(process)

    def _restart(self, process: Process) -> None:
        self.processes[self.processes.index(process)] = Process(f"{process.name}'")


def played(seed: int, acts: float = RENEW_DEADLINE, counts_from_answer: bool = False) -> Counter[str]:
    play = Play(Random(seed), acts, counts_from_answer)  # noqa: S311 - reproducible
    for _ in range(STEPS):
        play.step()
    return play.did


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**63))
def test_never_two_holders_act(seed: int) -> None:
    assert not played(seed)["two at once"]


def test_the_interleavings_reach_what_they_are_about() -> None:
    did = sum((played(seed) for seed in range(300)), Counter[str]())
    assert did["acted"] > 300
    assert did["taken over"] > 100


@pytest.mark.parametrize("broken", [{"acts": LEASE_DURATION + 1}, {"counts_from_answer": True}])
def test_a_holder_that_acts_too_long_is_detected(broken: dict[str, Any]) -> None:
    assert any(played(seed, **broken)["two at once"] for seed in range(2000))


@pytest.mark.parametrize(
    ("record", "watched", "now", "dead", "answer"),
    [
        (None, None, 0.0, False, Decision.ACQUIRE),
        (LeaseRecord("1"), None, 0.0, False, Decision.ACQUIRE),
        (LeaseRecord("1", "a"), None, 0.0, False, Decision.WAIT),
        (LeaseRecord("1", "a"), ObservedLease("1", 0.0), LEASE_DURATION, False, Decision.WAIT),
        (LeaseRecord("1", "a"), ObservedLease("1", 0.0), LEASE_DURATION + 0.1, False, Decision.ACQUIRE),
        (LeaseRecord("2", "a"), ObservedLease("1", 0.0), 1000.0, False, Decision.WAIT),
        (LeaseRecord("1", "a", duration=90.0), ObservedLease("1", 0.0), 60.0, False, Decision.WAIT),
        (LeaseRecord("1", "a"), None, 0.0, True, Decision.ACQUIRE),
    ],
)
def test_when_the_lock_may_be_acquired(
    record: LeaseRecord | None, watched: ObservedLease | None, now: float, dead: bool, answer: Decision
) -> None:
    assert decide(record, watched, now, holder_dead=dead) is answer


def test_a_holder_stops_acting_before_another_may_acquire_the_lock() -> None:
    assert RETRY_PERIOD < RENEW_DEADLINE < LEASE_DURATION


def test_a_lease_is_what_was_written() -> None:
    lease = lease_body("kube-system", "me", 7, 1_700_000_000.25, {"nodefall.dev/abort": "enough"}, "42")
    assert lease["spec"]["renewTime"] == "2023-11-14T22:13:20.250000Z"
    record = parse(lease)
    assert (record.version, record.holder, record.fence, record.duration) == ("42", "me", 7, LEASE_DURATION)
    assert record.abort == "enough"


def test_missing_fields_have_defaults() -> None:
    assert parse({"metadata": {"resourceVersion": "3"}, "spec": None}) == LeaseRecord("3")
    assert parse({}) == LeaseRecord("")


@pytest.mark.parametrize(
    ("seconds", "duration"), [(2**31 - 1, MAX_DURATION), (1, LEASE_DURATION), (-5, LEASE_DURATION), (60, 60.0)]
)
def test_no_lease_keeps_others_away_for_years_or_lets_them_in_early(seconds: int, duration: float) -> None:
    record = parse(
        {"metadata": {"resourceVersion": "3"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": seconds}}
    )
    assert record.duration == duration
    observed = observe(record, None, 0.0)
    assert decide(record, observed, duration - 1) is Decision.WAIT
    assert decide(record, observed, duration + 1) is Decision.ACQUIRE


def test_what_others_write_into_a_lease_has_its_limits() -> None:
    """The last fencing number has a successor, else no run could ever acquire the lock again."""
    spec = {"holderIdentity": "x" * 10**6, "leaseTransitions": 2**31 - 1}
    record = parse({"metadata": {"annotations": {"nodefall.dev/abort": "y" * 10**6}}, "spec": spec})
    assert (len(record.holder), len(record.abort)) == (500, 500)
    assert next_fence(record, None) == 1


@pytest.mark.parametrize(
    "renewed",
    ["9999-12-31T23:59:59.999999-23:59", "0001-01-01T00:00:00+23:59", "0000-01-01T00:00:00Z", "", "now", "2026-13-01"],
)
def test_a_renewal_at_no_time_is_not_recent(renewed: str) -> None:
    """Whoever can write Leases can write any text there."""
    record = parse({"metadata": {"resourceVersion": "3"}, "spec": {"holderIdentity": "x", "renewTime": renewed}})
    assert not record.is_surely_recent(1_795_000_000.0)
