"""Windows forms of actions: each matches its action, keeps the contract, and may come from another distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from pydantic import BaseModel

import chaos.core.outside
from chaos.core.action import AnyAction, Needs, Scope, UndoKind
from chaos.core.errors import PluginError
from chaos.core.permission import Permission
from chaos.core.windows import windows_form
from chaos.engine.registry import load_registry, load_windows_facts
from chaos.faults.actions.cordon import DRAIN
from chaos.testing import check_action, check_pair
from tests.api.outside.nodefall_sysctl import ACTION, Params
from tests.kit.actionkit import WITHOUT_PRECONDITIONS
from tools.action_pages import ACTIONS, WINDOWS_ACTIONS, example_target

PARAMS = Params(key="vm.swappiness", value="10")


@pytest.mark.parametrize("name", sorted(WINDOWS_ACTIONS))
def test_every_windows_form_matches_its_action(name: str) -> None:
    _, params = example_target(WINDOWS_ACTIONS[name])
    check_pair(ACTIONS[name], WINDOWS_ACTIONS[name], params)


@pytest.mark.parametrize("name", sorted(WINDOWS_ACTIONS))
def test_every_windows_form_keeps_the_contract(name: str) -> None:
    reason = WITHOUT_PRECONDITIONS.get(name, "")
    check_action(WINDOWS_ACTIONS[name], *example_target(WINDOWS_ACTIONS[name]), without_preconditions=reason)


def form(**declarations: Any) -> AnyAction:
    """A Windows form of ``sysctl``, with any declarations."""
    return replace(windows_form(ACTION, summary="set a value of the registry"), **declarations)


class OtherParams(BaseModel):
    key: str = ""
    value: str = ""


BREACHES: list[tuple[dict[str, Any], str]] = [
    ({"params": OtherParams}, "params differs"),
    ({"undo_kind": UndoKind.IRREVERSIBLE}, "undo_kind differs"),
    ({"scope": Scope.CLUSTER}, "scope differs"),
    ({"takes_down": True}, "takes_down differs"),
    ({"allowance": "custom"}, "allowance differs"),
    ({"name": "other"}, "it is named other"),
    ({"systems": frozenset({"linux", "windows"})}, "its systems are not just windows"),
    ({"needs": Needs(permissions=(Permission("", "nodes", "get"),))}, "permissions differs"),
    ({"needs": Needs(ends_pods=True)}, "terminates_pods differs"),
]


@pytest.mark.parametrize(("attributes", "breach"), BREACHES)
def test_a_breach_of_a_pair_is_found(attributes: dict[str, Any], breach: str) -> None:
    check_pair(ACTION, form(), PARAMS)
    with pytest.raises(AssertionError) as found:
        check_pair(ACTION, form(**attributes), PARAMS)
    assert str(found.value) == f"Windows form of sysctl: {breach}"


def test_an_action_that_needs_no_form_is_no_pair() -> None:
    with pytest.raises(AssertionError, match="acts through the API"):
        check_pair(DRAIN, windows_form(DRAIN), DRAIN.params())
    both = replace(ACTION, systems=frozenset({"linux", "windows"}))
    with pytest.raises(AssertionError, match="windows among its systems already"):
        check_pair(both, form(), PARAMS)


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    load_registry.cache_clear()
    load_windows_facts.cache_clear()
    yield
    load_registry.cache_clear()
    load_windows_facts.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Entry points by group with ``_`` for the dot, as a distribution would have them."""
    found = [EntryPoint("p", value, group.replace("_", ".", 1)) for group, value in points.items()]
    monkeypatch.setattr(
        chaos.core.outside, "entry_points", lambda group: [point for point in found if point.group == group]
    )


FORM = form()
UNKNOWN = form(name="nothing")


@pytest.mark.usefixtures("fresh_registry")
def test_a_form_from_another_distribution_is_taken_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    here = "tests.api.test_form_pairs"
    action = "tests.api.outside.nodefall_sysctl:ACTION"
    install(monkeypatch, nodefall_actions=action, nodefall_windows_actions=f"{here}:FORM")
    registry = load_registry()
    assert registry.action_on("sysctl", "windows").summary == FORM.summary
    assert registry.action_on("sysctl", "linux").summary == ACTION.summary
    assert registry.systems_of("sysctl") == {"linux", "windows"}


@pytest.mark.usefixtures("fresh_registry")
def test_a_form_of_no_action_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, nodefall_windows_actions="tests.api.test_form_pairs:UNKNOWN")
    with pytest.raises(PluginError, match="Windows form of an unknown action: nothing") as refused:
        load_registry()
    assert "nodefall.actions" in refused.value.hint


@pytest.mark.usefixtures("fresh_registry")
def test_a_fact_of_windows_comes_by_its_own_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    fact = "chaos.faults.readings.machine:sysctl"
    install(monkeypatch, nodefall_windows_facts=fact)
    assert "sysctl" in load_windows_facts()
    install(monkeypatch, nodefall_windows_facts="chaos.faults.readings.windows.identity:boot_id")
    load_windows_facts.cache_clear()
    with pytest.raises(PluginError, match="duplicate plug-in name 'boot-id'"):
        load_windows_facts()
