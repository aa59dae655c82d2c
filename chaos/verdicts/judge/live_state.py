"""What the judgements of a growing timeline hand on to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.core.assertion import Memos
from chaos.core.verdict import Status, Verdict


@dataclass
class LiveState:
    """``deadlines``: the moments that decide, of the last judgement.

    ``memos``: what was made of objects, to be made again only after a change.

    ``steady``: the verdicts on the steady state before the first step, once all held: this is never taken back.
    """

    deadlines: set[float] = field(default_factory=set)
    steady: tuple[Verdict, ...] = ()
    memos: Memos = field(default_factory=Memos)

    def note_steady(self, verdicts: tuple[Verdict, ...]) -> None:
        if all(verdict.status is Status.HELD for verdict in verdicts):
            self.steady = verdicts
