"""Facts of the Windows forms of actions: Windows has them, with the same parameters and words as Linux."""

from __future__ import annotations

import pytest

from chaos.cluster.cluster_state import ApiFacts
from chaos.core.api_fact import PseudoFact
from chaos.core.fact import FactRef
from chaos.engine.registry import load_facts, load_windows_facts
from chaos.faults.readings.logind import NOT_PREPARING
from tests.kit.actionkit import WINDOWS_ACTIONS
from tests.kit.fakes import FakeKube
from tools.action_pages import example_target

FROM_ELSEWHERE = {*map(str, PseudoFact), "configz"}


@pytest.mark.parametrize("name", WINDOWS_ACTIONS)
def test_a_form_reads_only_facts_of_windows(name: str) -> None:
    """One that Windows lacks would never be read: the step could not be prepared, or not be proven."""
    api = ApiFacts(FakeKube({}))
    needs = WINDOWS_ACTIONS[name].needs_with(example_target(WINDOWS_ACTIONS[name])[1])
    for fact in (*needs.facts, *needs.proof_facts):
        reference = FactRef.parse(fact)
        assert reference.name in load_windows_facts() or reference.name in FROM_ELSEWHERE or api.supports(fact), fact


@pytest.mark.parametrize("name", sorted(load_windows_facts().keys() & load_facts().keys()))
def test_a_fact_of_both_systems_takes_the_same_parameters(name: str) -> None:
    assert load_windows_facts()[name].params == load_facts()[name].params


WINDOWS_STARTED = (
    "<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>"
    "<Provider Name='Microsoft-Windows-Kernel-General'/><EventID>12</EventID></System></Event>"
)


def test_not_preparing_is_the_same_word() -> None:
    """Undo compares with it on both systems."""
    assert load_windows_facts()["preparing-for-shutdown"].parse(WINDOWS_STARTED, 0) == NOT_PREPARING
