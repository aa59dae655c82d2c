"""``nodefall schema KIND``: what nodefall writes for programs has the published form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from chaos.cli.reference.commands import OUTPUTS
from chaos.cli.reference.output_schemas import output_schema
from chaos.core.action import FactCheck, FailsafeTimer, Undo, UndoStep
from chaos.core.command import HostCommand
from chaos.core.moments import MOMENT_KEYS, RFC3339
from chaos.core.plan import Plan, PlannedStep, PlannedTarget, plan_document
from chaos.core.store.journal import NAME, Journal
from chaos.core.store.journal_format import AcceptedMachine
from chaos.rehearsal.forecast.document import Rehearsal, Victims, render_json, summarize
from chaos.rehearsal.forecast.sample import Finding, FindingKind, Sample
from chaos.rehearsal.suggest.document import render_suggestion
from chaos.reports.comparison.comparison import compare
from chaos.reports.comparison.document import comparison_document
from chaos.reports.comparison.side import expected_of_sides, side_of
from chaos.reports.day import document as day_document
from chaos.reports.run import json_
from chaos.verdicts.outcome.measure import Outcome
from tests.kit.command import command
from tests.kit.consumed_runs import consumed_runs
from tests.kit.recorded_days import hostile_view
from tests.kit.reported_runs import load
from tests.kit.suggestions import suggestion

CHECK = FactCheck("machine", "on")
UNDO = Undo((UndoStep(HostCommand(("systemctl", "start", "kubelet.service"))),), (CHECK,))
TIMER = FailsafeTimer("nodefall-x", 900.0, ("systemctl", "start", "kubelet.service"))
STEP = PlannedStep(
    "stop", "kubelet-stop", "n1", {"in": "60s"}, {"unit": "kubelet", "until": 5.0},
    (HostCommand(("systemctl", "stop", "kubelet.service")),), UNDO, ("stopped",), (CHECK,), TIMER,
)  # fmt: skip
TARGET = PlannedTarget("victim", "n1", "uid", "boot 1")
PLAN = Plan("x-1a2b3c", "x", "hash", "uid", 1_795_232_133.25, 7, (TARGET,), (STEP,), facts={"n1": {"machine": "on"}})


def outputs(kind: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Documents of a kind, as they are written."""
    if kind == "result":
        yield from (json.loads(json_.render(*made)) for made in consumed_runs().values())
    elif kind == "plan":
        yield json.loads(msgspec.json.encode(plan_document(PLAN)))
    elif kind == "journal":
        with Journal(folder) as journal:
            entry = journal.record_intent("cut", "partition", "n1", Undo((UndoStep(HostCommand(("true",))),)), 1.0)
            journal.record_replica(exists=True)
            journal.accept_machine(AcceptedMachine("n1", (CHECK,), (CHECK,), 2.0, "ada@laptop"))
            journal.mark_undone(entry, "the table is gone")
        yield from map(json.loads, (folder / NAME).read_text().splitlines())
    elif kind == "rehearsal":
        gone = Finding(FindingKind.SINGLE_REPLICA, "shop/db", 1, 1 / 3, False, "why")
        samples = [Sample(1, "w1", None, (gone,), outcome=Outcome(600.0)), Sample(2, "w1", None, refused="protected")]
        runs = summarize(samples, ("a change",), Victims({"w1": ("w1",)}))
        whole = Rehearsal("lost", "t", "h", "s.gz", "d", "v1.36.2", (1, 2), "node", 1, "first", runs, runs, ("x",))
        yield json.loads(render_json(whole))
    elif kind == "suggestion":
        yield json.loads(render_suggestion(suggestion()))
    elif kind == "comparison":
        sides = [side_of(name, load(name)[1]) for name in ("held", "violated")]
        yield comparison_document([compare(sides[1], expected_of_sides(sides[:1]))])
    else:
        yield json.loads(day_document.render_json(hostile_view("a <b>")))


@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_have_the_form_that_is_published(kind: str, tmp_path: Path) -> None:
    schema = output_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    found = list(outputs(kind, tmp_path))
    assert found
    for document in found:
        assert [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)] == []
        assert document["version"] == 1
        assert list(validator.iter_errors({**document, "version": "one"}))


@pytest.mark.parametrize("kind", OUTPUTS)
def test_keys_have_one_case(kind: str) -> None:
    for name, definition in output_schema(kind)["$defs"].items():
        for key in definition.get("properties", {}):
            assert re.fullmatch(r"[a-z][a-z0-9_]*", key), f"{name}.{key}"


@pytest.mark.parametrize("kind", ["result", "plan", "day"])
def test_every_moment_has_its_date_beside_it(kind: str, tmp_path: Path) -> None:
    dated = 0
    for document in outputs(kind, tmp_path):
        for part in _mappings({**document, "steps": []} if kind == "plan" else document):
            for key in MOMENT_KEYS & part.keys():
                if type(part[key]) in (int, float):
                    written = datetime.fromisoformat(part[f"{key}{RFC3339}"])
                    assert abs(written.timestamp() - part[key]) <= 1e-6
                    dated += 1
    assert dated


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(item)


def test_durations_end_at_the_microsecond(tmp_path: Path) -> None:
    texts = json.dumps([*outputs("rehearsal", tmp_path), *outputs("comparison", tmp_path)])
    assert "0.333333," in texts
    assert re.findall(r"\d\.\d{7,}", texts) == []


def test_the_command_prints_each() -> None:
    for kind in OUTPUTS:
        done = command("schema", kind)
        assert (done.returncode, json.loads(done.stdout)) == (0, json.loads(json.dumps(output_schema(kind))))
    assert command("schema", "result", "--catalog").returncode == 64


def test_what_an_undo_needs_stays_as_the_action_wrote_it() -> None:
    document = plan_document(PLAN)
    assert msgspec.convert(document, Plan) == PLAN
    assert document["steps"][0]["undo_state"] == STEP.undo_state
