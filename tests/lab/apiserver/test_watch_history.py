"""The ring of changes that a watch can go on from: never a gap, never a repetition, and bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.watch_cache import WatchCache
from chaos.lab.apiserver.store.store import Change

Steps = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0.0, 0.1, 5.0, 80.0])), max_size=400)


def grown(most: int, steps: list[tuple[int, float]]) -> tuple[WatchCache, list[Change]]:
    """A history and all that was ever added to it; steps are of version and of time."""
    history, added = WatchCache(most), []
    version, now = 1, 0.0
    for more, later in steps:
        version, now = version + more, now + later
        change = Change(version, "ADDED", "pods", {}, None, now)
        history.add(change)
        added.append(change)
    return history, added


@given(most=st.integers(1, 300), steps=Steps, start=st.integers(0, 1300))
def test_all_after_a_version_or_410(most: int, steps: list[tuple[int, float]], start: int) -> None:
    history, added = grown(most, steps)
    wanted = [change for change in added if change.version > start]
    assert len(history) <= most
    if added[-len(history) :][:1] == added[:1] or start >= added[-len(history)].version - 1:
        assert history.changes_since(start) == wanted
    else:
        with pytest.raises(ApiError) as refused:
            history.changes_since(start)
        assert (refused.value.code, refused.value.reason) == (410, "Expired")


@given(steps=Steps)
def test_the_newest_can_always_be_gone_on_from(steps: list[tuple[int, float]]) -> None:
    history, added = grown(3, steps)
    newest = added[-1].version if added else 1
    assert history.changes_since(newest) == []
    history.compact(newest + 5)
    assert history.changes_since(newest + 5) == []
    with pytest.raises(ApiError, match="too old resource version"):
        history.changes_since(newest)


@pytest.mark.parametrize(("every", "kept"), [(0.01, 1000), (1.0, 100), (0.5, 200)])
def test_fresh_changes_are_kept_up_to_the_most(every: float, kept: int) -> None:
    history, _ = grown(1000, [(1, every)] * 3000)
    assert len(history) == kept


def test_what_was_large_becomes_small_again() -> None:
    history, _ = grown(1000, [(1, 0.01)] * 3000 + [(1, 50.0)] * 20)
    assert len(history) == 100
