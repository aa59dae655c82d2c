"""Game day files: what they refer to, and the overrides of their entries.

Fleet files: what they refer to, and every mistake with its line.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
import yaml

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action
from chaos.core.errors import BadInput
from chaos.core.registry import PluginRegistry, discover
from chaos.documents.experiment import load_experiment
from chaos.documents.gameday import load_fleet, load_game_day
from chaos.documents.schema import json_schema
from chaos.documents.yaml_text import dump

DATA = Path(__file__).parent / "data"
REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))
NOW = datetime(2026, 11, 23, tzinfo=UTC)
TEXT = """\
apiVersion: nodefall.dev/v1alpha1
kind: Fleet
metadata: {name: europe}
spec:
  gameday: gameday.yaml
  image: registry.example.com/nodefall@sha256:0123
  maxClusters: 2
  onViolated: stop
  patience: 10m
  home: a
  clusters:
    - {name: a, inventory: a.json}
    - {name: b, inventory: b.json, context: admin, storage: {size: 2Gi, class: fast}}
"""


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


@pytest.fixture
def fleet_folder(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    for name in "ab":
        write_inventory(tmp_path / f"{name}.json", {"cluster": {"kubeconfig": "config", "expectUID": name}})
    write_inventory(tmp_path / "twin.json", {"cluster": {"kubeconfig": "other", "expectUID": "a"}})
    write_inventory(tmp_path / "lab.json", {"lab": {}})
    write_inventory(tmp_path / "open.json", {"cluster": {"kubeconfig": "config"}})
    return tmp_path


def write_inventory(path: Path, more: dict[str, object]) -> None:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": path.stem}}
    path.write_text(json.dumps(head | more))


def written(fleet_folder: Path, text: str) -> Path:
    path = fleet_folder / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_fleet_loads_with_its_files(fleet_folder: Path) -> None:
    files = load_fleet(written(fleet_folder, TEXT), REGISTRY, NOW)
    assert files.gameday == fleet_folder / "gameday.yaml"
    assert files.inventories == {"a": fleet_folder / "a.json", "b": fleet_folder / "b.json"}
    assert files.document.spec.home_name == "a"
    assert files.document.spec.clusters[1].storage.class_name == "fast"  # type: ignore[union-attr]


def test_what_is_left_out_has_careful_defaults(fleet_folder: Path) -> None:
    short = "".join(line for line in TEXT.splitlines(True) if not line.strip().startswith(("max", "on", "pat", "home")))
    spec = load_fleet(written(fleet_folder, short), REGISTRY, NOW).document.spec
    assert (spec.max_clusters, spec.on_violated, spec.home_name) == (1, "stop", "a")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("maxClusters: 2", "maxClusters: 3", 5, "maxClusters is 3, but there are 2 clusters"),
        ("maxClusters: 2", "maxClusters: 0", 7, "must be at least 1, not 0"),
        ("maxClusters: 2", "maxClusters: many", 7, "expected a whole number"),
        ("maxClusters: 2", "atOnce: 2", 7, "unknown key 'atOnce'"),
        ("onViolated: stop", "onViolated: stpo", 8, "did you mean 'stop'?"),
        ("patience: 10m", "patience: 10", 9, "10 has no unit"),
        ("home: a", "home: c", 10, "unknown cluster 'c'"),
        ("gameday: gameday.yaml", "gameday: none.yaml", 5, "file not found: 'none.yaml'"),
        ("gameday: gameday.yaml", "gameday: a.json", 1, "wrong kind Inventory: a GameDay is required here"),
        ("  gameday: gameday.yaml\n", "", 4, "missing key 'gameday'"),
        ("image: registry.example.com/nodefall@sha256:0123", "image: '-v'", 6, "does not match"),
        ("inventory: b.json", "inventory: none.json", 13, "file not found: 'none.json'"),
        ("inventory: b.json", "inventory: a.json", 13, "duplicate inventory 'a.json', first in line 12"),
        ("{name: b,", "{name: a,", 13, "duplicate cluster 'a', first in line 12"),
        ("inventory: b.json", "inventory: twin.json", 13, "it is the same cluster as a: expectUID is a"),
        ("inventory: b.json", "inventory: lab.json", 13, "a lab cannot be part of a fleet"),
        ("inventory: b.json", "inventory: open.json", 13, "expectUID is missing in this inventory"),
        ("size: 2Gi", "size: much", 13, "does not match"),
        ("context: admin", "reportURL: reports", 13, "does not match"),
        ("kind: Fleet", "kind: GameDay", 2, "wrong kind GameDay: a Fleet is required here"),
        ("name: europe", "name: " + "e" * 40, 1, "at most 39 characters"),
    ],
)
def test_mistakes_are_named_with_their_line(fleet_folder: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInput) as caught:
        load_fleet(written(fleet_folder, TEXT.replace(old, new, 1)), REGISTRY, NOW)
    found = [problem for problem in caught.value.problems if message in str(problem)]
    assert found, caught.value.problems
    assert found[0].line == line


def test_the_schema_for_editors_knows_fleets() -> None:
    schema = json_schema(REGISTRY)
    jsonschema.validate(yaml.safe_load(TEXT), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(TEXT.replace("onViolated: stop", "onViolated: go")), schema)
