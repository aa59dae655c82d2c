"""The data of a page, its interned strings and columns, and their packing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core import redaction
from chaos.core.action import ProofStatus
from chaos.core.recording import ActionRecord, ProbeResult
from chaos.core.result import RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, ValueLimit, Verdict
from chaos.reports.run.page import page_data as contract
from chaos.reports.run.page.lanes import lanes
from chaos.reports.run.page.page_data import STATES, VERSION, ColumnTable, StringTable, pack, page_data, unpack
from chaos.reports.run.steps import step_groups
from tests.kit.small_timelines import node, pod, timeline_of


@given(st.lists(st.text(max_size=20)))
def test_strings_are_found_by_their_index_and_stored_once(texts: list[str]) -> None:
    table = StringTable()
    indexes = [table.add(text) for text in texts]
    assert [table.add(text) for text in texts] == indexes
    assert len(set(table.strings)) == len(table.strings)
    assert all(text.isprintable() for text in table.strings)


def test_texts_that_are_shown_alike_are_one_string() -> None:
    table = StringTable()
    assert table.add("a\nb") == table.add("a b")
    assert table.strings == ["a b"]


def test_rows_are_stored_by_column() -> None:
    table = ColumnTable("a", "b")
    assert len(table) == 0
    table.append(1, "x")
    table.append(2, "y")
    assert table == {"a": [1, 2], "b": ["x", "y"]}
    assert len(table) == 2
    with pytest.raises(ValueError, match="zip"):
        table.append(3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(JSON)
def test_packed_value_is_unpacked_and_is_harmless_in_html(value: Any) -> None:
    packed = pack(value)
    assert unpack(packed) == value
    assert not set(packed) & set("<>&'\"\\\n")
    assert pack(value) == packed


Made = tuple[RunResult, Timeline]
RS = "ReplicaSet/web-1"


def step(name: str, node: str, begin: float | None, status: ProofStatus = ProofStatus.PROVEN) -> StepResult:
    return StepResult(name, "poweroff", node, begin, begin and begin + 1, "answered", "off", status, "off")


def result(*steps: StepResult) -> RunResult:
    targets: dict[str, tuple[str, ...]] = {"victim": ("n1",)}
    return RunResult(1, "r", "e", "t", Status.HELD, 0, "", False, "", "", 90, 300, targets, steps, (), ())


def data_of(made: RunResult, *lines: tuple[float, str, str, Any]) -> dict[str, Any]:
    timeline = timeline_of(*lines)
    return dict(page_data(made, timeline, lanes(timeline, ["n1"])))


def test_every_key_is_described_and_every_column_is_as_long_as_its_table(recorded: Made) -> None:
    data = page_data(*recorded, lanes(recorded[1], ["ra-worker"]))
    documented = {
        line.split()[0] for line in str(contract.__doc__).splitlines() if line.startswith("    ") and line[4] != " "
    }
    assert set(data) == documented
    assert data["version"] == VERSION
    for name in ("lanes", "spans", "taints", "marks", "observations", "changes"):
        assert len({len(column) for column in data[name].values()}) == 1, name
        for column in data[name]:
            assert column in str(contract.__doc__), column
    for name in ("spans", "taints", "marks"):
        assert sum(data["lanes"][name]) == len(next(iter(data[name].values())))
    assert sum(data["observations"]["changes"]) == len(data["changes"]["path"])
    assert json.loads(json.dumps(data, allow_nan=False))


def test_indexes_point_into_their_tables(recorded: Made) -> None:
    data = page_data(*recorded, lanes(recorded[1], ["ra-worker"]))
    strings, count = len(data["strings"]), len(data["lanes"]["kind"])
    for table, columns in (
        ("lanes", ("name", "short", "owner")),
        ("spans", ("text",)),
        ("observations", ("text", "kind")),
    ):
        for column in columns:
            assert all(0 <= index < strings for index in data[table][column])
    assert all(-1 <= lane < count for lane in (*data["lanes"]["node"], *data["observations"]["lane"]))
    assert all(0 <= state < len(STATES) for state in data["spans"]["state"])


def test_spans_of_a_lane_are_in_order_and_name_their_entries(recorded: Made) -> None:
    data = page_data(*recorded, lanes(recorded[1], ["ra-worker"]))
    first = 0
    for count in data["lanes"]["spans"]:
        starts = data["spans"]["start"][first : first + count]
        assert starts == sorted(starts)
        first += count
    entries = recorded[1].entries
    assert {entries[seq].kind for seq in data["spans"]["seq"]} == {"nodes", "pods"}


def test_observations_have_the_fields_that_changed() -> None:
    data = data_of(
        result(step("off", "n1", 100)),
        (90, "nodes", "LIST", node("True")),
        (105, "nodes", "MODIFIED", node("False")),
        (106, "nodes", "DELETED", node("False")),
    )
    table, changes, strings = data["observations"], data["changes"], data["strings"]
    assert (table["seq"], table["at"]) == ([0, 1, 2], [-10000, 5000, 6000])
    assert (table["isFirst"], table["changes"]) == ([1, 0, 0], [0, 1, 0])
    found = [tuple(strings[changes[name][0]] for name in ("path", "before", "after"))]
    assert found == [("status.conditions[Ready].status", "True", "False")]


@pytest.mark.parametrize(
    ("line", "is_affected"),
    [
        ((110, "pods", "MODIFIED", pod("Failed", uid="x", owner=RS)), True),  # on the target
        ((110, "pods", "MODIFIED", pod("Failed", uid="x", owner=RS, on="n2")), True),  # of an owner on the target
        ((110, "pods", "MODIFIED", pod("Failed", uid="x", owner="ReplicaSet/other", on="n2")), False),
        ((95, "pods", "MODIFIED", pod("Failed", uid="x", owner=RS)), False),  # before the fault
        ((110, "pods", "MODIFIED", pod("Running", uid="x", owner=RS)), False),  # no change
    ],
)
def test_affected_pods(line: tuple[float, str, str, Any], is_affected: bool) -> None:
    on = line[3].spec.node_name
    data = data_of(
        result(step("off", "n1", 100)),
        (90, "nodes", "LIST", node("True")),
        (90, "nodes", "LIST", node("True", name="n2")),
        (91, "pods", "LIST", pod("Running", uid="y", name="y", owner=RS)),
        (91, "pods", "LIST", pod("Running", uid="x", name="x", owner=line[3].metadata.owner_references[0].kind + "/"
                                 + line[3].metadata.owner_references[0].name, on=on)),
        line,
        (111, "pods", "MODIFIED", pod("Failed", uid="y", name="y", owner=RS)),
    )  # fmt: skip
    names = [data["strings"][index] for index in data["lanes"]["name"]]
    flags = dict(zip(names, data["lanes"]["flags"], strict=True))
    lane = next(name for name in names if name in ("ns/x", "ns/p"))
    assert bool(flags[lane] & 4) is is_affected
    assert flags["n1"] & 4
    assert not flags["n2"] & 4


@pytest.mark.parametrize("part", ["steady_state", "hypothesis", "abort", "recovery"])
def test_limits_of_verdicts_are_bounds_of_charts(part: str) -> None:
    limit = ValueLimit("probe", "shop", "latency", "at-most", 0.5)
    verdict = Verdict("v", "endpoint-available", Status.HELD, "", limits=(limit,))
    made = msgspec.structs.replace(result(), **{part: (verdict,)})
    data = data_of(made, (100, "probe", "shop", ProbeResult(True, 200, "", 0.05)))
    bounds = {chart["name"]: chart["bounds"] for chart in data["charts"]}
    assert bounds == {"probe shop ok": [["ok", 1.0]], "probe shop latency": [["limit", 500.0]]}


def test_equal_steps_of_one_moment_are_one_group() -> None:
    steps = [step("stop", f"n{i}", 100 + i / 100) for i in range(50)]
    steps[7] = step("stop", "n7", 100.07, ProofStatus.UNPROVEN)
    late, never = step("stop", "n60", 105), step("start", "n1", None)
    found = step_groups(result(*steps, late, step("start", "n1", 105), never), lambda t: round(t * 1000))
    assert [(g["name"], g["count"], g["proven"], g["begin"]) for g in found] == [
        ("stop", 50, 49, 100_000), ("stop", 1, 1, 105_000), ("start", 1, 1, 105_000),
    ]  # fmt: skip
    assert [item["status"] for item in found[0]["items"]].count("unproven") == 1


def test_undo_without_proof_lasts_until_the_end() -> None:
    data = data_of(
        result(step("off", "n1", 100)),
        (100, "action", "poweroff", ActionRecord("off", "begin")),
        (120, "action", "poweroff", ActionRecord("off", "undo")),
        (130, "nodes", "LIST", node("True")),
    )
    assert data["undo"] == [{"step": "off", "node": "", "begin": 20_000, "end": 30_000}]


def test_secrets_are_redacted_before_the_data_is_compressed(
    hostile: Callable[[str], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later redaction of the page cannot find them any more."""
    monkeypatch.setattr(redaction, "_known", redaction.Known())
    made, timeline = hostile("a hunter2-secret b")
    before = json.dumps(page_data(made, timeline, lanes(timeline)))
    redaction.register_secret("hunter2-secret")
    after = json.dumps(page_data(made, timeline, lanes(timeline)))
    assert "hunter2-secret" in before
    assert "hunter2-secret" not in after
