"""Every shipped experiment and game day loads, and says what it tests."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chaos.app.day.document import load_game_day, outline
from chaos.documents.bundled import read_summaries
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from chaos.lab.breakages import BREAKAGES, Breakage
from tests.kit.experiment_runs import BUNDLED
from tools import experiments_readme, statement_page

ROOT = Path(__file__).parents[2]
_ROOTS = ("pkg/", "plugin/", "staging/src/k8s.io/", "test/")  # of kubernetes/kubernetes


@pytest.mark.parametrize("name", BUNDLED)
def test_it_says_what_it_tests(name: str) -> None:
    item = BUNDLED[name]
    loaded = load(item.path)
    assert loaded.experiment.metadata.name == name
    assert item.family in experiments_readme.FAMILIES
    assert (
        set(experiments_readme.REQUIRED)
        <= set(item.notes)
        <= {*experiments_readme.REQUIRED, *experiments_readme.OPTIONAL}
    )
    assert item.notes["verdict"] in experiments_readme.VERDICTS
    assert not item.known or "really" in item.notes, "what does Kubernetes do instead?"
    assert item.notes["documentation"].startswith("https://")
    assert not {*item.breakages, *item.undecided_by} - set(BREAKAGES)
    assert load_inventory(ROOT / "hosts" / item.notes["lab"]).lab is not None
    assert loaded.experiment.spec.description.endswith(".")
    assert item.comment.endswith(f': "{item.notes["sentence"]}"')
    sources = re.findall(r"[\w./-]+\.go\b", item.notes["evidence"])  # a mere name: of the folder of the one before
    assert [path for path in sources if "/" in path and not path.startswith(_ROOTS)] == []
    recorded = {path.name[:2] for path in (ROOT / "tests" / "recordings").iterdir()}
    assert set(re.findall(r"(?<![\w.])\d\d\b", item.notes["evidence"].partition(";")[0])) <= recorded


def test_a_page_has_one_title() -> None:
    titles: dict[str, set[str]] = {}
    for item in BUNDLED.values():
        page = item.notes["documentation"].partition("#")[0]
        titles.setdefault(page, set()).add(item.comment.partition(': "')[0])
    assert {page: names for page, names in titles.items() if len(names) > 1} == {}


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=lambda item: item.id)
def test_a_breakage_is_noticed_or_cannot_be(breakage: Breakage) -> None:
    noticed = [name for name, item in BUNDLED.items() if breakage.id in item.breakages]
    why = f"name it in nodefall.dev/breakages of an experiment, or give unobservable_reason; it is in: {noticed}"
    assert bool(noticed) != bool(breakage.unobservable_reason), why


def test_ten_experiments_answer_questions_first() -> None:
    questions, titles = read_summaries(item.path for item in BUNDLED.values())
    assert len(questions) == 10
    assert {f"{n}. {text}" for n, text in enumerate(questions.values(), 1)} == {
        item.notes["question"] for item in BUNDLED.values() if "question" in item.notes
    }
    assert set(titles) == set(BUNDLED) - set(questions)
    assert titles == {name: load(BUNDLED[name].path).experiment.spec.title for name in titles}


@pytest.mark.parametrize(("page", "prefix"), [("experiments/README.md", ""), ("README.md", "experiments/")])
def test_pages_begin_with_the_ten(page: str, prefix: str) -> None:
    assert experiments_readme.questions(prefix) in (ROOT / page).read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    text = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    assert text == experiments_readme.page(), "run `python tools/experiments_readme.py`"


def test_the_page_of_statements_is_current() -> None:
    text = statement_page.PAGE.read_text(encoding="utf-8")
    assert text == statement_page.page(), "run `python tools/statement_page.py`"


GAMEDAYS = sorted((ROOT / "experiments" / "gamedays").glob("*.yaml"))
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize("path", GAMEDAYS, ids=lambda path: path.stem)
def test_it_is_valid(path: Path) -> None:
    day = load_game_day(path, NOW)
    assert day.document.metadata.name == path.stem
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert not outline(day, NOW, 5, 1).warnings


def test_the_example_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gameday.md").read_text(encoding="utf-8")
    text = page.partition("## The document\n")[2].partition("```yaml\n")[2].partition("```")[0]
    for name in ("staging.yaml", "prod-a.yaml"):
        text = text.replace(f"inventory: {name}", f"inventory: {ROOT / 'hosts' / 'lab.yaml'}")
    text = text.replace("experiment: ", f"experiment: {ROOT / 'experiments'}/")
    file = tmp_path / "monthly.yaml"
    file.write_text(text, encoding="utf-8")
    day = load_game_day(file, NOW)
    assert [entry.name for entry in day.entries] == ["cordon", "two-at-once"]
    assert day.entries[1].loaded.experiment.spec.targets["victim"].count == 2


def test_the_first_game_day_is_quick_and_on_the_lab() -> None:
    (path,) = [path for path in GAMEDAYS if path.stem == "first"]
    day = load_game_day(path, NOW)
    assert len(day.entries) == 5
    assert all(load_inventory(inventory).lab for inventory in day.inventories.values())
    assert outline(day, NOW, 5, 1).expected <= 15 * 60


def test_the_monthly_game_day_asks_before_it_goes_from_the_harmless_to_the_loss_of_a_machine() -> None:
    (path,) = [path for path in GAMEDAYS if path.stem == "monthly"]
    day = load_game_day(path, NOW)
    spec = day.document.spec
    assert spec.window
    assert all((spec.window.open, spec.window.not_, spec.schedule, spec.abort))
    assert {gate.kind for gate in spec.gates} >= {"no-other-run", "doctor", "approval"}
    shown = outline(day, NOW, 3, 1)
    held = [start for start in shown.starts if not start.closed_because]
    assert [start.at.local[:16] for start in held] == ["2026-12-01T10:00", "2027-02-02T10:00", "2027-03-02T10:00"]
    assert "end of the year" in next(start.closed_because for start in shown.starts if start.closed_because)
    assert shown.entries[-1].name == "power-cut"
    assert all(start.fits for start in held)
