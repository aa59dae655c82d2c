"""Frames of the live view, as committed text, which NODEFALL_WRITE_FRAMES=1 writes again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from chaos.cli.run.view.frame import frame
from chaos.cli.run.view.state import ViewState
from tests.kit.live_views import SCENES, SIZES

FRAMES = Path(__file__).parent / "frames"


def text_of(state: ViewState, width: int, height: int, encoding: str = "utf-8") -> str:
    return "".join(f"{line.plain.rstrip()}\n" for line in frame(state, width, height, encoding))


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("scene", SCENES)
def test_a_frame_is_as_committed(scene: str, width: int) -> None:
    path = FRAMES / f"{scene}-{width}.txt"
    shown = text_of(SCENES[scene](), width, SIZES[width])
    if os.environ.get("NODEFALL_WRITE_FRAMES"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def test_every_committed_frame_is_tested() -> None:
    assert {path.name for path in FRAMES.iterdir()} == {f"{scene}-{width}.txt" for scene in SCENES for width in SIZES}


@settings(max_examples=60)
@given(st.sampled_from(list(SCENES)), st.integers(20, 220), st.integers(4, 60))
def test_a_frame_has_the_size_of_the_terminal(scene: str, width: int, height: int) -> None:
    lines = frame(SCENES[scene](), width, height)
    assert len(lines) == height
    assert max(cell_len(line.plain) for line in lines) <= width


def test_a_narrow_terminal_lacks_columns_in_order() -> None:
    lost: list[str] = []
    titles = ("TAINTS", "PODS", "KUBELET LOCK", "SINCE", "POWER", "OBSERVED")
    for width in range(120, 39, -1):
        shown = text_of(SCENES["burning"](), width, 40)
        lost += [title for title in titles if title not in shown and title not in lost]
        assert "worker-1" in shown
        assert "NotReady (Unknown)" in shown
    assert [title for title in lost if title != "OBSERVED"] == ["PODS", "KUBELET LOCK", "SINCE", "TAINTS", "POWER"]
    assert "OBSERVED" in lost


def test_what_is_undecided_stays_when_there_is_no_room() -> None:
    shown = text_of(SCENES["crowded"](), 80, 16)
    assert "deadline 0" in shown
    assert "more; 12 held in all" in shown
    assert "stopping" in shown


def test_a_terminal_that_lacks_our_signs_gets_plain_ones() -> None:
    for scene in SCENES.values():
        text_of(scene(), 100, 40, "ascii").encode("ascii")


def test_colour_is_never_the_only_sign() -> None:
    shown = text_of(SCENES["violated"](), 120, 32)
    for word in ("✗ violated", "? inconclusive", "… pending", "✓ held", "NotReady (Unknown)", "deleted", "* worker-1"):
        assert word in shown


def test_text_from_outside_has_no_control_characters() -> None:
    state = SCENES["steady"]()
    state.cluster.experiment = "x"
    state.add(state.progress.note("\x1b[2J\x07 and \u202e more"))
    assert all(line.isprintable() for line in text_of(state, 120, 40).splitlines())


def test_without_keys_none_are_offered() -> None:
    state = SCENES["steady"]()
    state.has_keys = False
    assert "q stop" not in text_of(state, 120, 32)


def test_paused_events_stand_still_and_what_came_is_counted() -> None:
    state = SCENES["steady"]()
    state.toggle_pause()
    before = state.last_events(5)
    state.add(state.progress.note("news"))
    assert state.last_events(5) == before
    assert "space go on (1 new)" in text_of(state, 120, 32)
    state.toggle_pause()
    assert "news" in text_of(state, 120, 32)
