"""Proves again and again that the watches of a run are current and complete, as often as that is cheap."""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.observers.base import ObserverThread
from chaos.cluster.observers.currency import LISTED_ONLY
from chaos.cluster.observers.currency_schedule import IDLE_PERIOD, Job, ProvableWatch, Schedule
from chaos.cluster.watch_codec import TruncatedLineError
from chaos.core.ports import Clock, Sink
from chaos.core.recording import LAG_BOUND

# Seconds of cluster time between two reads of what the experiment asks about. Its watches take turns: what has a higher
# resourceVersion than a read, of whichever resource, happened after it, so that one read narrows all intervals.
PERIOD, MAX_PERIOD = 1.0, 5.0  # the latter: between two proofs of one watch
REPLAY_PERIOD = 10.0  # between two proofs that nothing came and went
CPU_SHARE = 0.02  # of one processor, for all consistent reads together, and the same for all replays
_MAX_IN_FLIGHT = 20  # unanswered reads of one watch: a slow server must not delay the next proof
_MAX_WORKERS = 160
_SLOW = 2  # unanswered reads of one watch, from which on the server is slow
_TICK = 0.25  # seconds of cluster time
# Of a slow server, more is asked while it matters: each read says something of the moments of all changes, and some are
# handled much sooner than others.
_CLOSE_PERIOD, _CLOSE_AFTER_MOMENT = 0.5, 2.0  # while a step is unanswered, and after a moment that decides
_HEDGES, _MAX_HEDGES = 20, 60  # more reads at a moment that decides, and of those how many unanswered ones
_RETRY_PAUSE = 2.0  # seconds of cluster time between two attempts that fail, in the wait before the judgement
_NOTABLE_WAIT = 2.0  # seconds of the wait before the judgement, from which on it is described to people
_PATIENCE, _NAP = 20, 0.01  # times and seconds of cluster time to wait for a proof at the start of a step
_log = logging.getLogger(__name__)


class CurrencyProver:
    """Proves the ``watches``: the ``relevant`` ones often, the others now and then, and all before the judgement.

    ``note`` describes a wait to people.
    """

    name = "currency"

    def __init__(
        self,
        watches: Sequence[ProvableWatch],
        relevant: Collection[str],
        clock: Clock,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock, self._note = clock, note
        self._relevant = [Schedule(w, period=0.0) for w in watches if w.name in relevant]
        self._schedules = [*self._relevant, *(Schedule(w, IDLE_PERIOD) for w in watches if w.name not in relevant)]
        self._share = CPU_SHARE / max(1, len(self._relevant))
        for number, schedule in enumerate(self._relevant):  # Events have resourceVersions of their own
            is_alone = schedule.watch.name in LISTED_ONLY
            schedule.period = PERIOD if is_alone else min(MAX_PERIOD, PERIOD * len(self._relevant))
            schedule.due = clock.now() + schedule.period * number / len(self._relevant)
        self._lock = threading.Lock()
        self._moments: set[float] = set()
        self._handled_until = self._close_until = -math.inf
        self._hedges = 0
        self._jobs: deque[Job] = deque()
        self._thread = ObserverThread("currency", clock, self._run, self._on_crash)
        self._worker_count = 0

    def start(self, sink: Sink) -> None:  # noqa: ARG002 - the watches emit the proofs
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def has_synced(self) -> bool:
        return True

    def prove_at(self, moments: Iterable[float]) -> None:
        """Take a proof of what the experiment asks about at each of ``moments`` as well, now if it is over already."""
        now = self._clock.now()
        moments = set(moments)
        if any(self._handled_until < moment <= now for moment in moments):
            self._submit_relevant(now)
        with self._lock:
            self._moments.update(moment for moment in moments if now < moment < math.inf)

    def prove_now(self) -> None:
        """Prove what the experiment asks about, and wait a moment for it: what follows is then known to be later."""
        begin = self._clock.now()
        self._submit_relevant(begin)
        for _ in range(_PATIENCE):
            self._clock.settle()
            if all(s.watch.current_until >= begin for s in self._relevant if s.watch.is_watching):
                return
            self._clock.sleep(_NAP)

    @contextmanager
    def watch_closely(self) -> Iterator[None]:
        """Prove what the experiment asks about now, and ask a slow server more often until the block ends."""
        self._close_until = math.inf
        try:
            self.prove_now()
            yield
        finally:
            self._close_until = -math.inf

    def final_sample(self) -> None:
        """Wait until everything up to now is proven, at most ``LAG_BOUND``."""
        begin = self._clock.now()
        is_noted = False
        for schedule in self._schedules:
            schedule.proof_due = begin
        while (now := self._clock.now()) < begin + LAG_BOUND and not self._thread.is_stopping:
            late = [s for s in self._schedules if s.watch.is_watching and s.watch.complete_until < begin]
            awaited = [s for s in late if not s.is_refused and (s.is_relevant or now < begin + PERIOD)]
            if not awaited:
                return
            if not is_noted and now >= begin + _NOTABLE_WAIT:
                is_noted = True
                self._note(_describe_wait([s.watch.name for s in awaited]))
            for schedule in late:
                if not schedule.is_failing or schedule.retry_due <= now:
                    schedule.retry_due = now + _RETRY_PAUSE
                    self._submit(schedule, now)
                    self._start_replay(schedule, now)
            if not self._clock.sleep(_TICK):
                return

    def _run(self) -> None:
        while not self._thread.is_stopping:
            now = self._clock.now()
            with self._lock:
                is_moment = any(moment <= now for moment in self._moments)
                self._moments = {moment for moment in self._moments if moment > now}
                following = min(self._moments, default=math.inf)
            if is_moment:
                self._submit_relevant(now)
            for schedule in self._schedules:
                if schedule.due <= now and schedule.watch.is_watching:
                    self._submit(schedule, now)
                if schedule.is_relevant and schedule.replay_due <= now and schedule.watch.is_watching:
                    self._start_replay(schedule, now)
            self._thread.pause(min(_TICK, following - now))

    def _submit_relevant(self, now: float) -> None:
        self._handled_until = now
        relevant = [schedule for schedule in self._relevant if schedule.watch.is_watching]
        periods = [self._period(schedule, now) for schedule in relevant]
        for number, (schedule, period) in enumerate(zip(relevant, periods, strict=True), start=1):
            self._submit(schedule, now, is_proof=True)
            schedule.due = now + period * number / len(relevant)  # not all at once, from now on
            self._start_replay(schedule, now, again=True)
        if any(schedule.in_flight > _SLOW for schedule in relevant):
            self._close_until = max(self._close_until, now + _CLOSE_AFTER_MOMENT)
            self._hedge()

    def _hedge(self) -> None:
        """Read the resourceVersion of one watch many times at once."""
        schedule = next((s for s in self._relevant if s.watch.name not in LISTED_ONLY), None)
        if schedule is None:
            return
        for _ in range(_HEDGES):
            with self._lock:
                if self._hedges >= _MAX_HEDGES:
                    return
                self._hedges += 1
            self._put(Job(schedule, is_hedge=True))

    def _submit(self, schedule: Schedule, now: float, *, is_proof: bool = False) -> None:
        period = self._period(schedule, now)
        with schedule.lock:
            if schedule.in_flight >= _MAX_IN_FLIGHT:
                return
            schedule.in_flight += 1
        is_proof = is_proof or schedule.proof_due <= now
        schedule.due = now + period
        if is_proof:
            schedule.proof_due = now + max(schedule.period, schedule.cost / self._share)
        self._put(Job(schedule, is_proof=is_proof))

    def _period(self, schedule: Schedule, now: float) -> float:
        """Seconds until the next read. While reads are unanswered, the watches take no turns."""
        if not schedule.is_relevant or not any(other.in_flight for other in self._relevant):
            return schedule.period
        is_close = schedule.in_flight >= _SLOW and now < self._close_until
        return _CLOSE_PERIOD if is_close else PERIOD

    def _put(self, job: Job) -> None:
        """Hand the job to a new thread, or to a running one if there are many."""
        with self._lock:
            self._jobs.append(job)
            if self._worker_count == _MAX_WORKERS:
                return
            self._worker_count += 1
        self._clock.threads.thread(self._work, "currency read").start()

    def _next_job(self) -> Job | None:
        """The next job, or None if the thread must end."""
        with self._lock:
            if self._jobs and not self._thread.is_stopping:
                return self._jobs.popleft()
            self._worker_count -= 1
            return None

    def _work(self) -> None:
        threads = self._clock.threads
        while (job := self._next_job()) is not None:
            schedule = job.schedule
            begin = threads.cpu_time()
            try:
                if job.is_proof:
                    schedule.watch.prove_currency()
                else:
                    schedule.watch.note_version()
                schedule.is_refused = schedule.is_failing = False
            except (KubeUnreachable, KubeRejected) as error:
                schedule.is_refused = isinstance(error, KubeRejected) and error.status < 500
                schedule.is_failing = True
                _log.debug("currency of %s was not proven: %s", schedule.watch.name, error.message)
            except Exception as error:  # noqa: BLE001 - a bug proves nothing, which is unknown and never wrong
                _log.exception("currency of %s was not proven: %s", schedule.watch.name, error)
            self._finish(job, threads.cpu_time() - begin)

    def _finish(self, job: Job, cost: float) -> None:
        if job.is_hedge:
            with self._lock:
                self._hedges -= 1
            return
        with job.schedule.lock:
            job.schedule.in_flight -= 1
            job.schedule.cost = cost if job.is_proof else job.schedule.cost

    def _start_replay(self, schedule: Schedule, now: float, *, again: bool = False) -> None:
        """Start a replay, unless one is under way; with ``again``, then after that."""
        with schedule.lock:
            if schedule.is_replaying:
                schedule.is_wanted_again |= again
                return
            schedule.is_replaying = True
        schedule.replay_due = now + max(REPLAY_PERIOD, schedule.replay_cost / self._share)
        self._clock.threads.thread(lambda: self._replay(schedule), f"replay of {schedule.watch.name}").start()

    def _replay(self, schedule: Schedule) -> None:
        threads = self._clock.threads
        while not self._thread.is_stopping:
            begin = threads.cpu_time()
            try:
                schedule.watch.replay()
            except (KubeUnreachable, KubeRejected, TruncatedLineError) as error:
                schedule.is_failing = True
                _log.debug("%s may be incomplete: %s", schedule.watch.name, error)
            except Exception as error:  # noqa: BLE001 - as above
                _log.exception("%s may be incomplete: %s", schedule.watch.name, error)
            schedule.replay_cost = threads.cpu_time() - begin
            with schedule.lock:
                schedule.is_replaying = schedule.is_wanted_again
                schedule.is_wanted_again = False
                if not schedule.is_replaying:
                    return

    def _on_crash(self, reason: str) -> None:
        _log.error("no further proofs of currency: %s", reason)


def _describe_wait(names: Sequence[str]) -> str:
    return f"waiting up to {LAG_BOUND:g} s until the watches of {', '.join(sorted(names))} have received all changes"
