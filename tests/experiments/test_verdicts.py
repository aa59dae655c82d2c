"""Every shipped experiment has the verdict that it says, in the process of its lab, with the least rights.

With ten seeds if NODEFALL_EXPERIMENTS=all (``.ci/nightly``). Over the network: ``test_connected.py``.
"""

from __future__ import annotations

import pytest

from tests.kit.experiment_runs import BUNDLED, IS_WHOLE
from tests.kit.rehearsals import outcome, rehearse

SEEDS = range(1, 11 if IS_WHOLE else 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BUNDLED)
def test_it_has_its_verdict(name: str, seed: int) -> None:
    run = rehearse(name, seed)
    assert outcome(run) == BUNDLED[name].notes["verdict"], run.result.headline
    assert all(undo.proven for undo in run.result.undo)
    assert run.result.foreign_faults == ()
    assert run.result.leftovers == ()
