"""Fleet files: what they refer to, and every mistake with its line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
import yaml

from chaos.core.errors import BadInput
from chaos.documents.gameday import load_fleet
from chaos.documents.schema import json_schema
from tests.documents.test_gameday_files import DATA, NOW, REGISTRY

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
    for name in "ab":
        write_inventory(tmp_path / f"{name}.json", {"cluster": {"kubeconfig": "config", "expectUID": name}})
    write_inventory(tmp_path / "twin.json", {"cluster": {"kubeconfig": "other", "expectUID": "a"}})
    write_inventory(tmp_path / "lab.json", {"lab": {}})
    write_inventory(tmp_path / "open.json", {"cluster": {"kubeconfig": "config"}})
    return tmp_path


def write_inventory(path: Path, more: dict[str, object]) -> None:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": path.stem}}
    path.write_text(json.dumps(head | more))


def written(folder: Path, text: str) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_fleet_loads_with_its_files(folder: Path) -> None:
    files = load_fleet(written(folder, TEXT), REGISTRY, NOW)
    assert files.gameday == folder / "gameday.yaml"
    assert files.inventories == {"a": folder / "a.json", "b": folder / "b.json"}
    assert files.document.spec.home_name == "a"
    assert files.document.spec.clusters[1].storage.class_name == "fast"  # type: ignore[union-attr]


def test_what_is_left_out_has_careful_defaults(folder: Path) -> None:
    short = "".join(line for line in TEXT.splitlines(True) if not line.strip().startswith(("max", "on", "pat", "home")))
    spec = load_fleet(written(folder, short), REGISTRY, NOW).document.spec
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
        ("kind: Fleet", "kind: GameDay", 2, "wrong kind GameDay: a Fleet is required here"),
        ("name: europe", "name: " + "e" * 40, 1, "at most 39 characters"),
    ],
)
def test_mistakes_are_named_with_their_line(folder: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInput) as caught:
        load_fleet(written(folder, TEXT.replace(old, new, 1)), REGISTRY, NOW)
    found = [problem for problem in caught.value.problems if message in str(problem)]
    assert found, caught.value.problems
    assert found[0].line == line


def test_the_schema_for_editors_knows_fleets() -> None:
    schema = json_schema(REGISTRY)
    jsonschema.validate(yaml.safe_load(TEXT), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(TEXT.replace("onViolated: stop", "onViolated: go")), schema)
