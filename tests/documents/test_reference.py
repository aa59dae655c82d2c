"""Every field of every document is described, and found by its path, by the end of it, or by a similar one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import chaos.machines  # noqa: F401 - the drivers are part of the inventory's model
from chaos.cli.app import cli, main
from chaos.documents.experiment import load_experiment
from chaos.documents.reference import DOCUMENTS, FieldRow, fields_of
from chaos.documents.schema import CATALOG_ENTRY, json_schema
from tests.kit.story import plugin_registry
from tools import field_pages

ROOT = Path(__file__).parents[2]
ROWS = [row for document in DOCUMENTS for row in fields_of(document)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.document} {row.path}")
def test_it_is_described(row: FieldRow) -> None:
    assert row.description, "give the field a description"
    assert row.type not in ("", "anything") or row.key in ("with", "options", "config")


@pytest.mark.parametrize("name", field_pages.pages())
def test_the_page_is_current(name: str) -> None:
    text = (field_pages.DOCS / name).read_text(encoding="utf-8")
    assert text == field_pages.pages()[name], "run python tools/field_pages.py"


def test_the_annotated_experiment_is_valid(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "experiment.md").read_text(), re.DOTALL)
    (tmp_path / "shop.yaml").write_text((ROOT / "experiments" / "workloads" / "patient.yaml").read_text())
    (tmp_path / "experiment.yaml").write_text(example)
    assert load_experiment(tmp_path / "experiment.yaml", plugin_registry()).metadata.name == "database-node-lost"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("spec.targets", "spec.targets (field of Experiment)"),
        ("targets", "spec.targets (field of Experiment)"),
        ("spec.targets.runs", "spec.targets.NAME.runs (field of Experiment)"),
        ("spec.method.action", "spec.method[].action (field of Experiment)"),
        ("defaults.user", "defaults.user (field of Inventory)"),
        ("spec.entries.repeat", "spec.entries[].repeat (field of GameDay)"),
        ("within", "within (time word)"),
        ("taint", "taint (action)"),
    ],
)
def test_explain_finds_it(name: str, first: str) -> None:
    done = CliRunner().invoke(cli, ["explain", name])
    assert done.output.startswith(first), done.output[:200]


def test_explain_shows_the_fields_below() -> None:
    output = CliRunner().invoke(cli, ["explain", "spec.targets"]).output
    assert "\n  role: worker | control-plane" in output
    assert "\n  count: whole number or text, default" in output


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("spec.tragets", "did you mean 'spec.targets'?"),
        ("powercut", "did you mean 'power-cut'?"),
        ("steadystate", "did you mean 'steadyState'?"),
        ("spec.netem-delay", "list the names with nodefall list"),
        ("nothing", "list the names with nodefall list"),
    ],
)
def test_explain_does_not_guess_across_kinds(wrong: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", wrong]) == 64
    assert f"hint: {hint}\n" in capsys.readouterr().err


def test_the_schema_describes_every_key_of_an_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json_schema(plugin_registry())
    for name in ("Experiment", "Spec", "TargetSpec", "Expectation", "Step"):
        for key, field in schema["$defs"][name]["properties"].items():
            assert field.get("description"), f"{name}.{key}"
    assert main(["schema", "--catalog"]) == 0
    assert json.loads(capsys.readouterr().out) == CATALOG_ENTRY
    assert CATALOG_ENTRY["url"] == schema["$id"]
