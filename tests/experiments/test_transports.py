"""Shipped experiments over transport pod, and on nodes like those of kind, which have a new machine ID after each boot.

They have the verdict that they have over SSH, or are refused before anything is sent. All of those that have a host if
NODEFALL_EXPERIMENTS=all (``.ci/nightly``).
"""

from __future__ import annotations

import pytest

from chaos.core.errors import Refused
from chaos.engine.registry import load_registry
from tests.kit.experiment_runs import BUNDLED, IS_WHOLE
from tests.kit.rehearsals import loaded, outcome, rehearse

# One for each way in which a node comes and goes: drained, shut down, cut off, crashed, out of memory.
SAMPLE = ("drain-allowed", "graceful-poweroff", "partition-ridden-out", "power-cut", "memory-pressure", "lease-stops")
ON_LINUX = [name for name in BUNDLED if not name.startswith("windows")]


def stops_exec(name: str) -> set[str]:
    """The actions of an experiment after which nothing can be run through the node's kubelet."""
    actions = load_registry().actions
    return {step.action for step in loaded(name).experiment.spec.method if actions[step.action].stops_exec}


@pytest.mark.parametrize("name", ON_LINUX if IS_WHOLE else SAMPLE)
def test_it_has_the_same_verdict_or_is_refused(name: str) -> None:
    if stops_exec(name):
        with pytest.raises(Refused, match="transport pod cannot undo it") as refused:
            rehearse(name, transport="pod")
        assert "transport ssh" in refused.value.hint
        return
    run = rehearse(name, transport="pod")
    assert outcome(run) == BUNDLED[name].notes["verdict"], run.result.headline
    assert all(undo.proven for undo in run.result.undo)
    assert any(undo.action == "helper-pods" for undo in run.result.undo) == _uses_hosts(name)
    assert run.result.leftovers == ()


def _uses_hosts(name: str) -> bool:
    """Whether the run has something to do on a host."""
    actions = load_registry().actions
    return any(actions[step.action].on_host for step in loaded(name).experiment.spec.method)


# One for each way in which a machine boots: after a power cut, a shutdown, by itself.
BOOTS = ("power-cut", "graceful-poweroff", "fast-reboot")


@pytest.mark.parametrize("transport", ["ssh", "docker", "pod"])
@pytest.mark.parametrize("name", ON_LINUX if IS_WHOLE else BOOTS)
def test_a_node_that_boots_is_the_same_node(name: str, transport: str) -> None:
    if why := refusal(name, transport):
        with pytest.raises(Refused, match=why):
            rehearse(name, transport=transport, is_kind=True)
        return
    run = rehearse(name, transport=transport, is_kind=True)
    assert outcome(run) == BUNDLED[name].notes["verdict"], run.result.headline
    assert all(undo.proven for undo in run.result.undo), [undo.because for undo in run.result.undo]
    assert run.result.leftovers == ()


def refusal(name: str, transport: str) -> str:
    """Why an experiment is refused over a transport, with or without new IDs; "" if it runs."""
    if transport == "docker" and name == "power-button":
        return "has a power control that cannot ask it to shut down"  # a container has no button
    return "transport pod cannot undo it" if transport == "pod" and stops_exec(name) else ""
