"""Every shipped experiment loads, says what it tests, and is in experiments/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from shelf import SHELF, TOOL

from chaos.lab.breakages import BREAKAGES
from chaos.load.inventory import load_inventory
from chaos.session.loading import load
from chaos.session.wiring import catalogue

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", SHELF)
def test_it_says_what_it_tests(name: str) -> None:
    item = SHELF[name]
    loaded = load(item.path, catalogue())
    assert loaded.experiment.metadata.name == name
    assert item.family in TOOL["FAMILIES"]
    assert set(TOOL["NEEDED"]) <= set(item.notes) <= {*TOOL["NEEDED"], *TOOL["OPTIONAL"]}
    assert item.notes["verdict"] in TOOL["VERDICTS"]
    assert item.notes["verdict"] != "violated" or "really" in item.notes, "what does Kubernetes do instead?"
    assert item.notes["documentation"].startswith("https://")
    assert not set(item.breakages) - set(BREAKAGES)
    assert load_inventory(ROOT / "hosts" / item.notes["lab"]).lab is not None
    proves, tests = item.comments
    assert proves.startswith("# Proves that ")
    assert item.notes["sentence"] in tests


def test_the_page_is_current() -> None:
    kept = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    assert kept == TOOL["page"](), "run `python tools/experiments_readme.py`"
