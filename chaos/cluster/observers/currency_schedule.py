"""When each watch of a run is to be proven current, and what proves it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol

IDLE_PERIOD = 20.0  # seconds between two proofs of a watch that only a later experiment may ask about


class ProvableWatch(Protocol):
    """A watch whose currency can be proven.

    Objects that a consistent read lists are ``current_until``, and all that came and went ``complete_until``.
    """

    name: str

    @property
    def is_watching(self) -> bool: ...

    @property
    def current_until(self) -> float: ...

    @property
    def complete_until(self) -> float: ...

    def prove_currency(self) -> None: ...

    def note_version(self) -> None: ...

    def replay(self) -> None: ...


@dataclass
class Schedule:
    """When one watch is proven. ``cost``: CPU seconds of a read; ``replay_cost``: of a replay."""

    watch: ProvableWatch
    period: float
    due: float = 0.0
    proof_due: float = 0.0  # until then, only the resourceVersion is read, which costs nothing
    cost: float = 0.0
    in_flight: int = 0
    replay_due: float = 0.0
    replay_cost: float = 0.0
    is_replaying: bool = False
    is_wanted_again: bool = False  # a replay after that which is under way
    is_refused: bool = False
    is_failing: bool = False  # the last read or replay was not answered
    retry_due: float = 0.0  # until then, what is failing is not tried again in the wait before the judgement
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_relevant(self) -> bool:
        return self.period < IDLE_PERIOD


@dataclass(frozen=True, slots=True)
class Job:
    """A read. ``is_proof``: of all versions, else only of the resourceVersion."""

    schedule: Schedule
    is_proof: bool = False
    is_hedge: bool = False
