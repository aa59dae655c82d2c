"""The watch cache: no gaps, no repetitions, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.store import Change
from chaos.lab.http.errors import ApiError
from chaos.lab.http.fault_injection import WatchCache

Steps = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0.0, 0.1, 5.0, 80.0])), max_size=400)


def grown(max_capacity: int, steps: list[tuple[int, float]]) -> tuple[WatchCache, list[Change]]:
    """A cache and all changes added to it; steps are of version and of time."""
    cache, added = WatchCache(max_capacity), []
    version, now = 1, 0.0
    for more, later in steps:
        version, now = version + more, now + later
        change = Change(version, "ADDED", "pods", {}, None, now)
        cache.add(change)
        added.append(change)
    return cache, added


@given(max_capacity=st.integers(1, 300), steps=Steps, start=st.integers(0, 1300))
def test_all_after_a_version_or_410(max_capacity: int, steps: list[tuple[int, float]], start: int) -> None:
    cache, added = grown(max_capacity, steps)
    wanted = [change for change in added if change.version > start]
    assert len(cache) <= max_capacity
    if added[-len(cache) :][:1] == added[:1] or start >= added[-len(cache)].version - 1:
        assert cache.changes_since(start) == wanted
    else:
        with pytest.raises(ApiError) as refused:
            cache.changes_since(start)
        assert (refused.value.code, refused.value.reason) == (410, "Expired")


@given(steps=Steps)
def test_a_watch_can_always_continue_from_the_newest_version(steps: list[tuple[int, float]]) -> None:
    cache, added = grown(3, steps)
    newest = added[-1].version if added else 1
    assert cache.changes_since(newest) == []
    cache.compact(newest + 5)
    assert cache.changes_since(newest + 5) == []
    with pytest.raises(ApiError, match="too old resource version"):
        cache.changes_since(newest)


@pytest.mark.parametrize(("every", "size"), [(0.01, 1000), (1.0, 100), (0.5, 200)])
def test_fresh_changes_are_cached_up_to_the_maximum(every: float, size: int) -> None:
    cache, _ = grown(1000, [(1, every)] * 3000)
    assert len(cache) == size


def test_a_large_cache_shrinks() -> None:
    cache, _ = grown(1000, [(1, 0.01)] * 3000 + [(1, 50.0)] * 20)
    assert len(cache) == 100
