"""The state of a day in a ConfigMap, which several processes change."""

from __future__ import annotations

import pytest

from chaos.app.day.store import DayStore, existing
from chaos.cluster.errors import KubeUnreachable
from chaos.core.errors import NodefallError, Refused
from chaos.gameday.state import DayRun, DayState, RunKey
from chaos.gameday.transitions import StateConflict, halt, resume, take_over
from tests.kit.day_api import ConfigMaps

NAME = "nodefall-gameday-weekly"


def a_day() -> DayState:
    runs = (DayRun(RunKey("a", "", 1), 1, "stop"),)
    return DayState("mon", "weekly", "a" * 64, 1, 1.0, "by-entry", 1, "me", 1, runs)


def store_of(kube: ConfigMaps) -> DayStore:
    return DayStore(kube, "kube-system", "weekly", lambda: 7.0)


def test_a_day_is_created_and_changed() -> None:
    store = store_of(ConfigMaps())
    assert store.read() is None
    assert store.update(lambda state: state or a_day()) == a_day()
    changed = store.update(existing(lambda state: take_over(state, "other")))
    assert (store.read(), changed.epoch) == (changed, 2)


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    store.update(existing(lambda state: state))
    assert kube.version == 1


def test_another_process_writes_first() -> None:
    """Its change is not lost."""
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    others = [lambda: store_of(kube).update(existing(lambda state: halt(state, "ada", "pager", 2.0)))]

    def first() -> None:
        if others:
            others.pop()()

    kube.before_write = first
    state = store.update(existing(lambda state: take_over(state, "other")))
    assert (state.epoch, state.halt and state.halt.by) == (2, "ada")


def test_others_that_never_stop() -> None:
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    kube.before_write = lambda: kube._touch(kube.items[NAME])
    with pytest.raises(NodefallError, match="other processes keep changing it"):
        store.update(existing(lambda state: take_over(state, "other")))


def test_an_answer_that_is_lost() -> None:
    """The write is repeated, with what was stored: transitions allow for that."""
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    kube.lost = 1
    with pytest.raises(KubeUnreachable):
        store.update(existing(lambda state: halt(state, "ada", "", 1.0)))
    kube.lost = 1
    state = store.update(existing(lambda state: resume(state, "ada", "fixed", 2.0)), patience=10.0)
    assert [each.resumed_by for each in state.halts] == ["ada"]


def test_a_signal_ends_the_patience() -> None:
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    kube.lost = 1
    with pytest.raises(KubeUnreachable):
        store.update(existing(lambda state: halt(state, "ada", "", 1.0)), 1000.0, lambda: True)


@pytest.mark.parametrize("reason", ["pager", ""])
def test_an_annotation_halts_the_day_and_becomes_a_part_of_its_state(reason: str) -> None:
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    kube.annotate(NAME, reason)
    state = store.read()
    assert state is not None
    assert state.halt is not None
    assert (state.halt.by, state.halt.reason, state.halt.at) == ("an annotation of its ConfigMap", reason, 7.0)
    store.update(existing(lambda state: state))
    assert "annotations" not in kube.items[NAME]["metadata"]
    resumed = store.update(existing(lambda state: resume(state, "ada", "over", 8.0)))
    assert resumed.halt is None
    assert store.read() == resumed


@pytest.mark.parametrize(
    ("text", "message"), [("{}", "invalid state of a game day"), ("", "invalid state of a game day")]
)
def test_a_damaged_state_is_neither_read_nor_written_over(text: str, message: str) -> None:
    kube = ConfigMaps()
    store = store_of(kube)
    store.update(lambda _: a_day())
    kube.items[NAME]["data"]["state.json"] = text
    with pytest.raises(Refused, match=message):
        store.read()
    with pytest.raises(Refused, match=message):
        store.update(lambda _: a_day())


def test_the_state_of_another_game_day() -> None:
    kube = ConfigMaps()
    store_of(kube).update(lambda _: a_day())
    kube.items[NAME]["data"]["state.json"] = kube.items[NAME]["data"]["state.json"].replace("weekly", "monthly")
    with pytest.raises(Refused, match="the state of weekly belongs to monthly"):
        store_of(kube).read()


def test_a_deleted_day_is_not_created_again() -> None:
    with pytest.raises(StateConflict, match="there is no such game day"):
        store_of(ConfigMaps()).update(existing(lambda state: state))
