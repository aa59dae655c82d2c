"""The state machines of the Lease, the takeover, the undo and the journal in the cluster, explored breadth-first.

Every decision about the Lease is that of ``chaos.cluster.lease``. A process does one thing at a time, in any order with
the others; between any two, time may pass, which is also how a process pauses. Requests are done by the server at any
time after they are sent, even if their process is dead or has given up waiting. Check and injection are one event: what
hangs between the two for longer than the margin of the Lease cannot be prevented by any lock.

``BREAKS`` are rules that can be broken, to see that the model notices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from chaos.cluster.lease import Decision, Leadership, LeaseRecord, ObservedLease, decide, next_fence, observe

TICK, OLDEST = 15.0, 45.0  # a tenure ends with the second tick, a Lease expires with the third
BREAKS = (
    "same machine counts as dead",
    "tenure never ends",
    "tenure counts from the answer",
    "undo although the lock is lost",
    "no second look at the journal",
    "no question at the end",
    "pending undo is ignored",
)


@dataclass(frozen=True)
class Bound:
    """How far to explore: ``ticks`` of time, ``crashes`` of processes and ``losses`` of answers in all."""

    runs: int
    undo: bool
    ticks: int
    crashes: int
    losses: int
    steps: int = 1
    one_machine: bool = False
    states: int = 5_000_000
    broken: str = ""


class Request(NamedTuple):
    """``answer``: 0 not done yet, 1 done, 2 rejected, 3 lost. ``age``: since it was sent."""

    kind: str
    run: int
    over: int
    value: int
    holder: str = ""
    age: float = 0.0
    answer: int = 0


class Process(NamedTuple):
    """``pending`` is the journal on its disk, ``known`` what was ever in it: bits of steps."""

    name: str
    run: int
    at: str
    observed: tuple[int, float] | None = None
    tenure: tuple[int, float] | None = None  # fence, age
    lost: bool = False
    missing: bool = False
    unanswered: bool = False
    aborted: bool = False
    robbed: bool = False
    injected: int = 0
    pending: int = 0
    known: int = 0
    version: int = 0  # of the journal in the cluster
    request: Request | None = None

    @property
    def is_undo(self) -> bool:
        return self.name == "undo"


class State(NamedTuple):
    lease: tuple[int, str, int] | None  # version, holder, fence
    journals: tuple[tuple[int, int] | None, ...]  # of each run: version, pending steps
    faults: tuple[int, ...]
    processes: tuple[Process, ...]
    wire: tuple[Request, ...]  # of processes that do not wait any more
    left: tuple[int, int, int]  # ticks, crashes, losses


class Violation(Exception):
    """An invariant does not hold."""


@dataclass
class Explored:
    states: int = 0
    complete: bool = False
    violation: str | None = None
    trace: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)


def explore(bound: Bound) -> Explored:
    """Every state that can be reached within the bound, or the shortest way to a violation."""
    return _Explorer(bound).run()


@cache
def _record(lease: tuple[int, str, int] | None) -> LeaseRecord | None:
    return lease and LeaseRecord(str(lease[0]), lease[1], lease[2])


class _Explorer:
    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self.explored = Explored()

    def run(self) -> Explored:
        bound = self.bound
        processes = [Process(f"run{number}", number, "want") for number in range(bound.runs)]
        if bound.undo:
            processes.append(Process("undo", 0, "import"))
        left = (bound.ticks, bound.crashes, bound.losses)
        start = State(None, (None,) * bound.runs, (0,) * bound.runs, tuple(processes), (), left)
        parents: dict[State, tuple[State, str] | None] = {start: None}
        queue = deque([start])
        while queue and len(parents) < bound.states:
            state = queue.popleft()
            try:
                for event, following in self.events(state):
                    self.explored.reached.add(event.rpartition(" ")[2])
                    canonical = _canonical(following)
                    if canonical not in parents:
                        parents[canonical] = state, event
                        queue.append(canonical)
                        self.check(canonical)
            except Violation as violation:
                self.explored.violation = str(violation)
                self.explored.trace = _trace(parents, state)
                break
        self.explored.states, self.explored.complete = len(parents), not queue
        return self.explored

    def check(self, state: State) -> None:
        """A fault is always in the journal in the cluster, from which any machine can finish the undo."""
        for run, fault in enumerate(state.faults):
            journal = state.journals[run]
            if fault & ~(journal[1] if journal else 0):
                raise Violation(f"a fault of run {run} is forgotten")

    def events(self, state: State) -> Iterator[tuple[str, State]]:
        ticks, crashes, losses = state.left
        if ticks:
            yield "tick", _tick(state)
        for index, request in enumerate(state.wire):
            done, _ = self.serve(state._replace(wire=state.wire[:index] + state.wire[index + 1 :]), request)
            yield f"late {request.kind}", done
        for index, process in enumerate(state.processes):
            if process.at in {"end", "dead"}:
                continue
            if crashes:
                dead = _put(state, index, Process(process.name, process.run, "dead"))
                yield (
                    f"{process.name} crash",
                    _to_wire(dead, process.request)._replace(left=(ticks, crashes - 1, losses)),
                )
            if process.request is None:
                yield from self.act(state, index, process)
            elif process.request.answer == 0:
                done, answer = self.serve(state, process.request)
                served = process._replace(
                    request=process.request._replace(answer=answer),
                    version=_journal_version(done, process.request) if answer == 1 else process.version,
                    robbed=done.processes[index].robbed,
                )
                yield f"{process.name} served", _put(done, index, served)
                if losses:
                    lost = _put(state, index, process._replace(request=process.request._replace(answer=3)))
                    yield (
                        f"{process.name} timeout",
                        _to_wire(lost, process.request)._replace(left=(ticks, crashes, losses - 1)),
                    )
            else:
                yield from self.hear(state, index, process, process.request.answer)
                if losses and process.request.answer == 1:
                    yield (
                        f"{process.name} lost",
                        _put(state, index, process._replace(request=process.request._replace(answer=3)))._replace(
                            left=(ticks, crashes, losses - 1)
                        ),
                    )

    def serve(self, state: State, request: Request) -> tuple[State, int]:
        """What the API server does: only over exactly the version that was read."""
        if request.kind in {"write", "delete"}:
            if (state.lease[0] if state.lease else 0) != request.over:
                return state, 2
            lease = (_version(state), request.holder, request.value) if request.kind == "write" else None
            robbed = tuple(
                p._replace(robbed=True) if p.tenure and p.name != request.holder else p for p in state.processes
            )
            return state._replace(lease=lease, processes=robbed), 1
        journal = state.journals[request.run]
        if request.kind == "publish":
            if (journal[0] if journal else 0) != request.over and (journal is None or request.over):
                return state, 2
            return _put_journal(state, request.run, (_version(state), request.value)), 1
        if journal and request.over not in {0, journal[0]}:
            return state, 2
        return _put_journal(state, request.run, None), 1

    # What each process does next; ``at`` names it.

    def act(self, state: State, index: int, process: Process) -> Iterator[tuple[str, State]]:
        step = getattr(self, f"at_{process.at}")
        for event, following in step(state, process):
            if isinstance(following, State):
                yield f"{process.name} {event}", following
            else:
                yield f"{process.name} {event}", _put(state, index, following)

    def hear(self, state: State, index: int, process: Process, answer: int) -> Iterator[tuple[str, State]]:
        """The answer comes, or the process gives up waiting."""
        assert process.request
        age = 0.0 if self.bound.broken == "tenure counts from the answer" else process.request.age
        if process.request.kind == "write" and answer == 1:
            process = process._replace(tenure=(process.request.value, age), missing=False, unanswered=False)
        heard: Process = getattr(self, f"heard_{process.at}")(process._replace(request=None), answer)
        yield f"{process.name} hears", _put(state, index, heard)

    def leadership(self, process: Process) -> Leadership:
        assert process.tenure
        return Leadership(process.name, process.tenure[0], -process.tenure[1])

    def is_valid(self, process: Process) -> bool:
        if self.bound.broken == "tenure never ends":
            return process.tenure is not None
        return process.tenure is not None and self.leadership(process).is_valid(0.0)

    def attempt(self, state: State, process: Process) -> tuple[str, Process]:
        """One look at the Lease of a process that wants it."""
        record = _record(state.lease)
        observed = process.observed and ObservedLease(str(process.observed[0]), -process.observed[1])
        dead = record is not None and (record.holder == process.name or self.is_gone(state, record.holder))
        if decide(record, observed, 0.0, holder_dead=dead) is Decision.WAIT:
            assert record
            seen = observe(record, observed, 0.0)
            return "observe", process._replace(observed=(int(seen.version), -seen.observed_at))
        fence = next_fence(record, self.leadership(process) if process.tenure else None)
        request = Request("write", process.run, state.lease[0] if state.lease else 0, fence, process.name)
        return "attempt", process._replace(request=request, observed=None)

    def is_gone(self, state: State, holder: str) -> bool:
        """Proven only on the same machine."""
        if not self.bound.one_machine:
            return False
        alive = any(p.name == holder and p.at not in {"end", "dead"} for p in state.processes)
        return not alive or self.bound.broken == "same machine counts as dead"

    def renewal(self, state: State, process: Process, after: str) -> tuple[str, Process]:
        """Renew the lock, or notice that it is lost."""
        record = _record(state.lease)
        leadership = self.leadership(process)
        if not leadership.is_held(record):
            return "loss", process._replace(lost=True, missing=True, aborted=True, at="undo")
        assert state.lease
        fence = next_fence(record, leadership)
        return "renew", process._replace(at=after, request=Request("write", 0, state.lease[0], fence, process.name))

    def at_import(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        journal = state.journals[process.run]
        if journal and journal[1]:
            yield "import", process._replace(at="want", pending=journal[1], known=journal[1])

    def at_want(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        yield self.attempt(state, process)

    def heard_want(self, process: Process, answer: int) -> Process:
        after = {1: "reread" if process.is_undo else "others", 2: "want", 3: "release"}
        return process._replace(at=after[answer])

    def at_others(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        pending = any(journal and journal[1] for journal in state.journals)
        refused = pending and self.bound.broken != "pending undo is ignored"
        yield "others", process._replace(at="release" if refused else "intent", aborted=refused)

    def at_intent(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        pending = process.pending | 1 << process.injected
        request = Request("publish", process.run, process.version, pending)
        yield "intent", process._replace(at="intent", pending=pending, request=request)

    def heard_intent(self, process: Process, answer: int) -> Process:
        if answer != 1:
            return process._replace(at="undo", aborted=True)
        return process._replace(at="renew")

    def at_renew(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        yield self.renewal(state, process, "renew")

    def heard_renew(self, process: Process, answer: int) -> Process:
        return process._replace(at="renew" if answer == 2 else "fire")

    def at_fire(self, state: State, process: Process) -> Iterator[tuple[str, Process | State]]:
        if not self.is_valid(process):
            yield "abort", process._replace(at="undo", aborted=True)
            return
        if not self.leadership(process).is_held(_record(state.lease)):
            raise Violation(f"{process.name} injects without the lock")
        if any(fault for run, fault in enumerate(state.faults) if run != process.run):
            raise Violation("two inject at once")
        injected = process.injected + 1
        after = process._replace(injected=injected, at="intent" if injected < self.bound.steps else "observe")
        following = _put(state, state.processes.index(process), after)
        yield "inject", _put_fault(following, process.run, state.faults[process.run] | 1 << process.injected)

    def at_observe(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        yield self.renewal(state, process, "observe")
        yield "finish", process._replace(at="undo")

    def heard_observe(self, process: Process, answer: int) -> Process:
        return process

    def at_undo(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        careless = self.bound.broken == "undo although the lock is lost"
        if process.missing and not careless:
            yield "blocked", process._replace(at="release" if process.is_undo else "regain", unanswered=False)
        elif not (self.is_valid(process) or process.unanswered or careless):
            yield self.renewal(state, process, "undo")
        elif not process.pending:
            yield "nothing", process._replace(at="reconcile")
        else:
            self.check_undo(state, process)
            yield "begin", process._replace(at="undoing")

    def check_undo(self, state: State, process: Process) -> None:
        for other in state.processes:
            if other.run != process.run or other.name == process.name or not self.is_valid(other):
                continue
            if not other.is_undo and not other.lost and other.at not in {"undo", "undoing", "reconcile", "release"}:
                raise Violation("undo of a living run's fault")
            if other.at == "undoing" and (process.missing or self.is_valid(process)):
                raise Violation("two undo the same")

    def heard_undo(self, process: Process, answer: int) -> Process:
        """An API server that does not answer is no reason to wait."""
        return process._replace(unanswered=answer == 3)

    def at_undoing(self, state: State, process: Process) -> Iterator[tuple[str, State]]:
        following = _put(state, state.processes.index(process), process._replace(at="reconcile", pending=0))
        yield "undo", _put_fault(following, process.run, state.faults[process.run] & ~process.pending)

    def at_regain(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        yield self.attempt(state, process)
        yield "abandon", process._replace(at="release")

    def heard_regain(self, process: Process, answer: int) -> Process:
        return process._replace(at="reread" if answer == 1 else "regain")

    def at_reread(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        """The journal in the cluster, read with the lock held. What is missing in it is only checked, not undone."""
        version, published = state.journals[process.run] or (0, 0)
        new = published & ~process.known if process.is_undo else 0
        if self.bound.broken == "no second look at the journal":
            new = 0
        checked = process.pending & ~published & ~state.faults[process.run]
        pending = process.pending & ~checked | new
        yield "reread", process._replace(at="undo", version=version, pending=pending, known=process.known | new)

    def at_reconcile(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        if process.missing:
            yield "blocked", process._replace(at="release" if process.is_undo else "regain")
        elif not process.is_undo and not process.version:
            yield "unpublished", process._replace(at="confirm")
        else:
            yield "reconcile", process._replace(request=Request("remove", process.run, process.version, 0))

    def heard_reconcile(self, process: Process, answer: int) -> Process:
        return process._replace(at="release" if process.is_undo or answer != 1 else "confirm")

    def at_confirm(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        if self.bound.broken == "no question at the end":
            yield "verdict", self.verdict(process)
            return
        event, following = self.renewal(state, process, "confirm")
        yield event, following if following.request else following._replace(at="release")

    def heard_confirm(self, process: Process, answer: int) -> Process:
        if answer == 2:
            return process
        return self.verdict(process) if self.is_valid(process) else process._replace(at="release", aborted=True)

    def verdict(self, process: Process) -> Process:
        """Held, unless the run ended early."""
        if process.robbed and not process.aborted:
            raise Violation(f"{process.name} is held although another process had its lock")
        return process._replace(at="release")

    def at_release(self, state: State, process: Process) -> Iterator[tuple[str, Process]]:
        if state.lease and state.lease[1] == process.name:
            yield "release", process._replace(request=Request("delete", 0, state.lease[0], 0, process.name))
        else:
            yield "end", Process(process.name, process.run, "end")

    def heard_release(self, process: Process, answer: int) -> Process:
        return Process(process.name, process.run, "end")


def _put(state: State, index: int, process: Process) -> State:
    return state._replace(processes=(*state.processes[:index], process, *state.processes[index + 1 :]))


def _put_journal(state: State, run: int, journal: tuple[int, int] | None) -> State:
    return state._replace(journals=(*state.journals[:run], journal, *state.journals[run + 1 :]))


def _put_fault(state: State, run: int, fault: int) -> State:
    return state._replace(faults=(*state.faults[:run], fault, *state.faults[run + 1 :]))


def _to_wire(state: State, request: Request | None) -> State:
    if request is None or request.answer:
        return state
    return state._replace(wire=(*state.wire, request._replace(age=0.0)))


def _journal_version(state: State, request: Request) -> int:
    journal = state.journals[request.run]
    return journal[0] if journal else 0


def _tick(state: State) -> State:
    def older(process: Process) -> Process:
        return process._replace(
            observed=process.observed and (process.observed[0], _older(process.observed[1])),
            tenure=process.tenure and (process.tenure[0], _older(process.tenure[1])),
            request=process.request and process.request._replace(age=_older(process.request.age)),
        )

    ticks, crashes, losses = state.left
    return state._replace(processes=tuple(map(older, state.processes)), left=(ticks - 1, crashes, losses))


def _older(age: float) -> float:
    return min(age + TICK, OLDEST)


def _version(state: State) -> int:
    """A version that no part of the state knows."""
    return max(_versions(state), default=0) + 1


def _versions(state: State) -> Iterator[int]:
    if state.lease:
        yield state.lease[0]
    yield from (journal[0] for journal in state.journals if journal)
    for process in state.processes:
        yield process.version
        if process.observed:
            yield process.observed[0]
        if process.request:
            yield process.request.over
    yield from (request.over for request in state.wire)


def _canonical(state: State) -> State:
    """The same state with its versions numbered by their first appearance: only their equality matters."""
    numbers = {0: 0}
    for version in _versions(state):
        numbers.setdefault(version, len(numbers))
    if all(old == new for old, new in numbers.items()):
        return state
    return state._replace(
        lease=state.lease and (numbers[state.lease[0]], *state.lease[1:]),
        journals=tuple(journal and (numbers[journal[0]], journal[1]) for journal in state.journals),
        processes=tuple(
            process._replace(
                version=numbers[process.version],
                observed=process.observed and (numbers[process.observed[0]], process.observed[1]),
                request=process.request and process.request._replace(over=numbers[process.request.over]),
            )
            for process in state.processes
        ),
        wire=tuple(sorted(request._replace(over=numbers[request.over]) for request in state.wire)),
    )


def _trace(parents: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    events: list[str] = []
    before = parents[state]
    while before:
        state, event = before
        events.append(event)
        before = parents[state]
    return events[::-1]
