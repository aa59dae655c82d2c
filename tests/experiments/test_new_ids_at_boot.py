"""Shipped experiments on nodes like those of kind, which have a new machine ID after each boot: nothing stays pending.

All of those that have a host if NODEFALL_EXPERIMENTS=all (``.ci/nightly``).
"""

from __future__ import annotations

import pytest

from chaos.core.errors import Refused
from tests.experiments.test_over_pods import ON_LINUX, stops_exec
from tests.kit.experiment_runs import BUNDLED, IS_WHOLE
from tests.kit.rehearsals import outcome, rehearse

# One for each way in which a machine boots: after a power cut, a shutdown, by itself.
SAMPLE = ("power-cut", "graceful-poweroff", "fast-reboot")


@pytest.mark.parametrize("transport", ["ssh", "docker", "pod"])
@pytest.mark.parametrize("name", ON_LINUX if IS_WHOLE else SAMPLE)
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
