"""Game day files: what they refer to, and the overrides of their entries."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.errors import BadInput
from chaos.core.registry import PluginRegistry, discover
from chaos.documents.experiment import load_experiment
from chaos.documents.gameday import load_game_day
from chaos.documents.schema import json_schema
from chaos.documents.yaml_text import dump

DATA = Path(__file__).parent / "data"
REGISTRY = PluginRegistry(discover(chaos.faults.actions, "ACTION"), discover(chaos.verdicts.assertions, "ASSERTION"))
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    return tmp_path


def changed(folder: Path, *changes: tuple[str, str]) -> Path:
    """The game day of tests/documents/data with texts replaced."""
    text = (DATA / "gameday.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "changed.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_game_day_loads_with_its_files() -> None:
    files = load_game_day(DATA / "gameday.yaml", REGISTRY, NOW)
    assert [entry.name for entry in files.entries] == ["graceful-poweroff", "longer"]
    assert files.inventories == {"east": DATA / "inventory.yaml", "west": DATA / "inventory.yaml"}
    assert files.document.spec.pause.at_least == "30s"


def test_overrides_replace_keys_of_the_experiment() -> None:
    plain, longer = (entry.experiment.spec for entry in load_game_day(DATA / "gameday.yaml", REGISTRY, NOW).entries)
    target = longer.targets["victim"]
    assert (target.role, target.count, target.zone) == ("worker", 2, "a")
    assert (longer.method[0].with_, longer.max_duration) == ({"force": True}, "20m")
    assert (plain.targets["victim"].count, plain.method[0].with_, plain.max_duration) == (1, {}, "15m")
    assert longer.method[1] == plain.method[1]


def test_abort_conditions_of_the_day_are_part_of_each_experiment(folder: Path) -> None:
    (plain, longer), day = (files := load_game_day(DATA / "gameday.yaml", REGISTRY, NOW)).entries, files.document
    own = load_experiment(DATA / "experiment.yaml", REGISTRY).spec.abort
    for entry in (plain, longer):
        abort = entry.experiment.spec.abort
        assert abort[: len(own)] == own
        assert all(condition in abort for condition in day.spec.abort)
        assert len(abort) == len({str(condition) for condition in abort}), "none twice"
        file = folder / "written.yaml"
        file.write_text(dump([entry.experiment.model_dump(mode="json", by_alias=True, exclude_defaults=True)]))
        assert load_experiment(file, REGISTRY) == entry.experiment, "it is valid as a separate experiment"


def test_an_override_can_remove_a_key(folder: Path) -> None:
    file = changed(folder, ("{count: 2, zone: a}", "{role: null}"))
    assert load_game_day(file, REGISTRY, NOW).entries[1].experiment.spec.targets["victim"].role is None


@pytest.mark.parametrize("name", ["force", "delete-emptydir-data"])
def test_an_override_is_checked_as_if_it_were_in_the_experiment(folder: Path, name: str) -> None:
    """No parameter makes a step irreversible that the experiment does not allow to be."""
    text = (DATA / "experiment.yaml").read_text(encoding="utf-8")
    (folder / "experiment.yaml").write_text(
        text.replace("action: poweroff", "action: drain, with: {ignore-daemonsets: true}"), encoding="utf-8"
    )
    file = changed(folder, ("{force: true}", f"{{{name}: true}}"))
    with pytest.raises(BadInput) as bad:
        load_game_day(file, REGISTRY, NOW)
    (problem,) = bad.value.problems
    assert (problem.file, problem.line) == (str(file), 31)
    assert problem.message == f"drain with {name} cannot be undone"


def test_an_override_keeps_other_parameters(folder: Path) -> None:
    text = (DATA / "experiment.yaml").read_text(encoding="utf-8")
    (folder / "experiment.yaml").write_text(
        text.replace("action: poweroff", "action: drain, with: {ignore-daemonsets: true, grace: 3}"), encoding="utf-8"
    )
    file = changed(folder, ("{force: true}", "{grace: 5}"))
    given = load_game_day(file, REGISTRY, NOW).entries[1].experiment.spec.method[0].with_
    assert given == {"ignore-daemonsets": True, "grace": 5}


def test_problems_of_experiments_and_inventories_are_reported_in_their_files(folder: Path) -> None:
    for name, old, new in (("experiment", "within: 5s", "within: 5"), ("inventory", "hosts:", "hosst:")):
        text = (DATA / f"{name}.yaml").read_text(encoding="utf-8")
        assert old in text
        (folder / f"{name}.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput) as bad:
        load_game_day(changed(folder, ("parallel: 2", "parallel: 0")), REGISTRY, NOW)
    found = {Path(problem.file).name: problem.message for problem in bad.value.problems}
    assert found == {
        "changed.yaml": "must be at least 1, not 0",
        "experiment.yaml": "5 has no unit; write 5s for seconds",
        "inventory.yaml": "unknown key 'hosst'",
    }


def test_a_window_must_open_after_now(folder: Path) -> None:
    file = changed(folder, ("2026-12-24, 12-25,", "{from: 2027-01-01, to: 2040-01-01},"))
    load_game_day(file, REGISTRY, NOW)
    with pytest.raises(BadInput, match=r"13:5: the window never opens: freezes cover all its hours"):
        load_game_day(file, REGISTRY, datetime(2027, 1, 1, tzinfo=UTC))


def test_runs_of_a_day_are_bounded(folder: Path) -> None:
    entries = "".join(f"    - {{name: e{n}, experiment: experiment.yaml, repeat: 100}}\n" for n in range(3))
    with pytest.raises(BadInput, match="605 runs on one day: the limit is 500"):
        load_game_day(changed(folder, ("  entries:\n", "  entries:\n" + entries)), REGISTRY, NOW)


def test_game_days_are_in_the_schema() -> None:
    schema = json_schema(REGISTRY)
    assert {"$ref": "#/$defs/GameDay"} in schema["oneOf"]
    gates = schema["$defs"]["GameDaySpec"]["properties"]["gates"]["items"]["discriminator"]["mapping"]
    assert {"doctor", "approval", "no-other-run"} <= gates.keys()
