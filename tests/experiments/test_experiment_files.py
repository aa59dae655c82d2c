"""Every shipped experiment loads, says what it tests, and is in experiments/README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from chaos.engine.registry import load_registry
from chaos.lab.breakages import BREAKAGES, Breakage
from tests.kit.experiment_runs import BUNDLED
from tools import experiments_readme

ROOT = Path(__file__).parents[2]
_ROOTS = ("pkg/", "plugin/", "staging/src/k8s.io/", "test/")  # of kubernetes/kubernetes


@pytest.mark.parametrize("name", BUNDLED)
def test_it_says_what_it_tests(name: str) -> None:
    item = BUNDLED[name]
    loaded = load(item.path, load_registry())
    assert loaded.experiment.metadata.name == name
    assert item.family in experiments_readme.FAMILIES
    assert (
        set(experiments_readme.REQUIRED)
        <= set(item.notes)
        <= {*experiments_readme.REQUIRED, *experiments_readme.OPTIONAL}
    )
    assert item.notes["verdict"] in experiments_readme.VERDICTS
    assert item.notes["verdict"] != "violated" or "really" in item.notes, "what does Kubernetes do instead?"
    assert item.notes["documentation"].startswith("https://")
    assert not {*item.breakages, *item.undecided_by} - set(BREAKAGES)
    assert load_inventory(ROOT / "hosts" / item.notes["lab"]).lab is not None
    proves, tests = item.comments
    assert proves.startswith("# Proves that ")
    assert tests.endswith(f': "{item.notes["sentence"]}"')
    sources = re.findall(r"[\w./-]+\.go\b", item.notes["evidence"])  # a mere name: of the folder of the one before
    assert [path for path in sources if "/" in path and not path.startswith(_ROOTS)] == []
    recorded = {path.name[:2] for path in (ROOT / "tests" / "recordings").iterdir()}
    assert set(re.findall(r"(?<![\w.])\d\d\b", item.notes["evidence"].partition(";")[0])) <= recorded


def test_a_page_has_one_title() -> None:
    titles: dict[str, set[str]] = {}
    for item in BUNDLED.values():
        page = item.notes["documentation"].partition("#")[0]
        titles.setdefault(page, set()).add(item.comments[1].partition(': "')[0])
    assert {page: names for page, names in titles.items() if len(names) > 1} == {}


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=lambda item: item.id)
def test_a_breakage_is_noticed_or_cannot_be(breakage: Breakage) -> None:
    noticed = [name for name, item in BUNDLED.items() if breakage.id in item.breakages]
    assert bool(noticed) != bool(breakage.unobservable_reason), noticed


def test_the_page_is_current() -> None:
    text = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    assert text == experiments_readme.page(), "run `python tools/experiments_readme.py`"
