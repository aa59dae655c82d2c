"""The lock, the journals and the undo as a model, explored over all interleavings (tests/kit/lock_model.py).

Two runs and an undo of the first one, with requests that take any time, answers that are lost, processes that pause or
die at any point. ``.ci/nightly`` explores more (NODEFALL_INTERLEAVINGS).
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.kit.lock_model import BREAKS, Bound, explore

LARGE = int(os.environ.get("NODEFALL_INTERLEAVINGS", "0")) > 0
SMALL = {
    "a run and its undo": Bound(runs=1, undo=True, ticks=3, crashes=1, losses=0),
    "a run and its undo, a lost answer": Bound(runs=1, undo=True, ticks=3, crashes=0, losses=1),
    "two steps and an undo": Bound(runs=1, steps=2, undo=True, ticks=3, crashes=0, losses=0),
    "two runs": Bound(runs=2, undo=False, ticks=3, crashes=1, losses=0),
    "two runs of one machine": Bound(runs=2, undo=False, ticks=1, crashes=1, losses=0, one_machine=True),
}
# Each rule, with the bound in which the model notices that it is broken.
BROKEN = {
    "same machine counts as dead": "two runs of one machine",
    "tenure never ends": "a run and its undo",
    "tenure counts from the answer": "a run and its undo",
    "undo although the lock is lost": "a run and its undo",
    "no second look at the journal": "two steps and an undo",
    "no question at the end": "a run and its undo",
    "pending undo is ignored": "two runs",
}
NIGHTLY = {
    "two runs and an undo": Bound(runs=2, undo=True, ticks=3, crashes=0, losses=0),
    "two runs and an undo of one machine": Bound(runs=2, undo=True, ticks=1, crashes=1, losses=0, one_machine=True),
    "two steps, an undo, a death, a lost answer": Bound(runs=1, steps=2, undo=True, ticks=3, crashes=1, losses=1),
    "two runs, a death, a lost answer": Bound(runs=2, undo=False, ticks=3, crashes=1, losses=1),
    "a run and its undo, twice everything": Bound(runs=1, undo=True, ticks=4, crashes=2, losses=2),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_invariants_hold_in_every_interleaving(name: str) -> None:
    explored = explore(SMALL[name])
    assert explored.violation is None, explored.trace
    assert explored.complete
    assert {"inject", "undo"} <= explored.reached


@pytest.mark.parametrize("rule", BREAKS)
def test_a_broken_rule_is_noticed(rule: str) -> None:
    explored = explore(replace(SMALL[BROKEN[rule]], broken=rule))
    assert explored.violation
    assert explored.trace


@pytest.mark.skipif(not LARGE, reason="takes minutes: NODEFALL_INTERLEAVINGS=1 or more")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NIGHTLY)
def test_the_invariants_hold_in_more_interleavings(name: str) -> None:
    explored = explore(NIGHTLY[name])
    assert explored.violation is None, explored.trace
    assert explored.complete
