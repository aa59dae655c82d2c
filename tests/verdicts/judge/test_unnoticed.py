"""For how long the API reported a machine Ready that was off, and the measure of it."""

from __future__ import annotations

import pytest

from chaos.verdicts.judge.unnoticed import unnoticed
from chaos.verdicts.outcome.outcome import fault_time, outcome_of
from tests.kit.story import T0, Story


def cut(end: float = 60) -> Story:
    """The power of n1 is cut at 10, and read off from 12 until ``end``; p is Ready there, and q elsewhere."""
    story = Story().node(0, "n1").node(0, "n2").done(10, "power-cut").pod(0, "p").pod(0, "q", node="n2")
    for t in range(12, int(end), 2):
        story.host(t, "machine", "off")
    return story.host(end, "machine", "on") if end < 60 else story


CASES = [
    ("the node, then its pods", cut().node(55, "n1", "Unknown").pod(56, "p", ready=False), (44, True, True, 1)),
    ("only the node", cut().pod(11, "p", ready=False).node(55, "n1", "Unknown"), (43, True, True, 0)),
    ("only a pod", cut().node(11, "n1", "False").pod(30, "p", type_="DELETED"), (18, True, False, 1)),
    ("nothing was ever noticed", cut(30), (18, True, True, 1)),
    ("nothing was noticed before the end", cut(), (88, False, True, 1)),
    ("the API was right", cut().node(11, "n1", "False").pod(11, "p", ready=False), None),
    ("the machine was not off", cut().lease(15).lease(25).lease(35), None),
    ("no power control", Story().node(0, "n1").done(10, "power-cut").node(55, "n1", "Unknown"), None),
]  # fmt: skip


@pytest.mark.parametrize(("story", "expected"), [pytest.param(s, e, id=what) for what, s, e in CASES])
def test_how_long_it_was_unnoticed(story: Story, expected: tuple[float, bool, bool, int] | None) -> None:
    timeline = story.timeline(100)
    found = [(each.seconds, each.is_over, each.was_ready, each.pods) for each in unnoticed(timeline)]
    assert found == ([] if expected is None else [expected])
    measured = {
        str(m): s for m, s in outcome_of(timeline, fault_time(timeline) or T0).seconds.items() if "notice" in m.what
    }
    is_measured = expected is not None and expected[1]
    seconds = expected[0] if expected else 0
    wanted = {"node n1: off noticed": seconds + 2, "node n1: off unnoticed for": seconds}
    assert measured == (wanted if is_measured else {})
