"""The judge against the oracle: random expectations, also on recordings of an imperfect observer."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from chaos import api
from tests.oracle import evaluate
from tests.oracle.compare import Tally, calls, compare, opposite, recordings
from tests.oracle.question import Case
from tests.oracle.world import World, read

VERDICTS = Path(__file__).parents[1] / "recordings" / "verdicts"
# What is right by README.md there; "?": the recording cannot show it, and the truth is the word after it.
RIGHT = {
    "01-count-removed": ("demo", {"a": "violated", "b": "held", "c": "held"}),
    "05-event-clock-1s": ("demo", {"a": "held", "b": "violated"}),
    "07-pods-started": ("nodefall-power-cut-c2ae11", {"a": "held"}),
    "08-set-late-watch": ("nodefall-no-execute-removed-in-time-e66fc6", {"a": "held", "b": "violated"}),
    "09-behind": ("nodefall-out-of-service-no-execute-cd5a1c", {"a": "held"}),
    "11-event-slow-step": ("nodefall-ordered-ready-c200cb", {"a": "held"}),
    "12-lease-late-watch": ("nodefall-node-deleted-31da5b", {"a": "held"}),
    "15-replaced-while-running": ("demo", {"a": "violated", "b": "violated", "c": "held"}),
}
UNDECIDED_BY_THE_ORACLE = {"08-set-late-watch", "09-behind", "12-lease-late-watch"}


@pytest.mark.parametrize("name", RIGHT)
def test_the_oracle_is_right(name: str) -> None:
    namespace, right = RIGHT[name]
    spec = yaml.safe_load((VERDICTS / f"{name}.yaml").read_text(encoding="utf-8"))["spec"]
    targets = {target: given["nodes"] for target, given in spec["targets"].items()}
    case = Case(World(read(VERDICTS / f"{name}.jsonl.gz")), targets, namespace, spec["method"][0]["name"])
    found = {h["name"]: evaluate.judge(case, h) for h in spec["hypothesis"]}
    undecided = dict.fromkeys(right, "inconclusive")
    assert found == (undecided if name in UNDECIDED_BY_THE_ORACLE else right)


@pytest.mark.parametrize("name", RIGHT)
def test_the_judge_is_never_the_opposite(name: str) -> None:
    namespace, right = RIGHT[name]
    recording, experiment = VERDICTS / f"{name}.jsonl.gz", VERDICTS / f"{name}.yaml"
    result = api.judge(recording, experiment, bind={"workload": [namespace]}).result
    assert not [v.name for v in result.hypothesis if opposite(str(v.status), right[v.name])]


@pytest.mark.parametrize("seed", range(1, 6))
def test_five_thousand_pairs(seed: int) -> None:
    _compare(1000, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_hundred_thousand_pairs(seed: int) -> None:
    _compare(100_000, seed)


def _compare(pairs: int, seed: int) -> None:
    total = Tally()
    for call in calls(pairs, seed, recordings(), mutations=2):
        total.add(compare(*call))
    assert total.pairs >= pairs * 0.8
    assert not total.failures, "\n\n".join(f"{f.text()}\n  {f.command()}" for f in total.failures[:5])
