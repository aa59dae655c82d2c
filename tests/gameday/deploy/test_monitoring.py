"""deploy/prometheus and deploy/grafana: rules by promtool, and nothing that asks for a metric that nodefall has not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.gameday.events import EventKind
from chaos.gameday.notify.receivers import day_metrics
from chaos.reports.run.openmetrics import run_metrics
from tests.kit.day_events import event
from tests.kit.reported_runs import load

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES, DASHBOARD = DEPLOY / "prometheus" / "rules.yaml", DEPLOY / "grafana" / "dashboard.json"
PROMTOOL = shutil.which("promtool")


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [*(rule["expr"] for rule in rules()), *queries]


def exported() -> dict[str, set[str]]:
    """The labels of each metric, with those of its group."""
    metrics = [*run_metrics(*load("held")), *day_metrics(event(EventKind.DAY_ENDS, counts={}))]
    groups = {"nodefall_run": {"gameday", "cluster", "entry"}, "nodefall_gameday": {"gameday", "cluster"}}
    return {
        metric.name: {name for sample in metric.samples for name in sample.labels}
        | next(labels for prefix, labels in groups.items() if metric.name.startswith(f"{prefix}_"))
        for metric in metrics
    }


def test_every_metric_and_label_exists() -> None:
    known = exported()
    for expression in expressions():
        for name, selector in re.findall(r"\b(nodefall_\w+)(?:\{([^}]*)\})?", expression):
            assert name in known, expression
            assert set(re.findall(r"(\w+)\s*=", selector)) <= known[name], expression


def test_rules_name_every_verdict_that_is_not_held() -> None:
    (verdicts,) = (metric for metric in run_metrics(*load("held")) if metric.name == "nodefall_run_verdict")
    named = {word for rule in rules() for word in re.findall(r"[a-z]+", rule["expr"].partition("verdict=")[2])}
    assert {sample.labels["verdict"] for sample in verdicts.samples} - named == {"held"}


@pytest.mark.skipif(not PROMTOOL, reason="needs Debian's package prometheus (apt-get install prometheus)")
@pytest.mark.parametrize("arguments", [("check", "rules", "rules.yaml"), ("test", "rules", "rules_test.yaml")])
def test_rules_pass_promtool(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [PROMTOOL or "", *arguments], cwd=RULES.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not PROMTOOL, reason="needs Debian's package prometheus (apt-get install prometheus)")
def test_the_dashboard_asks_what_promtool_understands(tmp_path: Path) -> None:
    records = [{"record": f"q:{number}", "expr": text} for number, text in enumerate(expressions())]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "all", "rules": records}]}))
    done = subprocess.run(
        [PROMTOOL or "", "check", "rules", "rules.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tested_to_be_raised() -> None:
    document = yaml.safe_load((RULES.parent / "rules_test.yaml").read_text(encoding="utf-8"))
    raised = {each["alertname"] for test in document["tests"] for each in test["alert_rule_test"] if each["exp_alerts"]}
    assert raised == {rule["alert"] for rule in rules()}


def test_panels_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    cells = [
        (column, row)
        for place in (panel["gridPos"] for panel in panels)
        for column in range(place["x"], place["x"] + place["w"])
        for row in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(column for column, _ in cells) == 23
    assert len({panel["id"] for panel in panels}) == len(panels)
