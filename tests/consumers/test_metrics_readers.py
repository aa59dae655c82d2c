"""Prometheus' tools and a real Pushgateway read metrics; nothing of yesterday is left after today's refusal."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chaos.cluster.observers.http_client import http_request
from chaos.reports.run.openmetrics import render
from tests.consumers.conftest import HERE
from tests.gameday.notify.test_real_receivers import running
from tests.kit.consumed_runs import consumed_runs
from tests.kit.processes import lab, nodefall

PROMTOOL, PUSHGATEWAY = shutil.which("promtool"), shutil.which("prometheus-pushgateway")
TEXTS = {name: render(*made) for name, made in consumed_runs().items()}
FIELD = HERE / "field"


def states(text: str, metric: str) -> dict[str, float]:
    """Value by the first label in alphabetical order that is not of a group: verdict or status."""
    found = re.findall(rf'^{metric}\{{.*?(?:verdict|status)="(\w+)"\}} (\S+)$', text, re.MULTILINE)
    return {label: float(value) for label, value in found}


@pytest.mark.parametrize("name", TEXTS)
def test_exactly_one_verdict_is_one_and_none_is_missing(name: str) -> None:
    found = states(TEXTS[name], "nodefall_run_verdict")
    assert found.keys() == {"held", "violated", "inconclusive", "interrupted", "refused", "skipped"}
    assert sorted(found.values()) == [0.0] * 5 + [1.0]
    assert states(TEXTS[name], "nodefall_run_expectations").keys() == {"held", "violated", "inconclusive", "known"}


@pytest.mark.slow
def test_openmetrics_parser_reads_every_file() -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    for text in TEXTS.values():
        families = {family.name: family for family in parser.text_string_to_metric_families(text)}
        assert {"nodefall_run_verdict", "nodefall_run_end_timestamp_seconds"} <= families.keys()
        assert all(family.type == "gauge" and family.samples for family in families.values())


@pytest.mark.slow
@pytest.mark.skipif(not PROMTOOL, reason="needs Debian's package prometheus (apt-get install prometheus)")
def test_promtool_accepts_every_file() -> None:
    for text in TEXTS.values():
        argv = [PROMTOOL or "", "check", "metrics"]
        done = subprocess.run(argv, input=text, text=True, capture_output=True, timeout=60, check=False)
        assert done.stdout + done.stderr == ""


@pytest.mark.slow
@pytest.mark.lab
@pytest.mark.skipif(not PUSHGATEWAY, reason="needs Debian's package prometheus-pushgateway")
def test_nothing_of_yesterday_is_left_after_a_refusal(tmp_path: Path) -> None:
    with running(PUSHGATEWAY or "", []) as url, lab(tmp_path) as inventory:
        day = (FIELD / "stale-metrics.yaml").read_text().replace("http://127.0.0.1:19091", url)
        (tmp_path / "stale.yaml").write_text(day)
        (tmp_path / "st.yaml").write_text((FIELD / "st.yaml").read_text())

        def run(day: str, code: int) -> str:
            done = nodefall("gameday", "run", "stale.yaml", "-i", inventory, "--id", day, cwd=tmp_path)
            assert done.returncode == code, done.stderr
            text = http_request("GET", f"{url}/metrics").body.decode()
            return re.sub(r'entry="",|,?instance="",?|job="nodefall",?', "", text)

        text = run("monday", 0)
        assert states(text, "nodefall_run_verdict")["held"] == 1
        counts = states(text, "nodefall_gameday_runs")
        assert (counts.pop("held"), set(counts.values())) == (1, {0})
        (tmp_path / "st.yaml").write_text((FIELD / "refused.yaml").read_text().replace("name: refused", "name: st"))
        text = run("tuesday", 4)
        verdicts = states(text, "nodefall_run_verdict")
        assert (verdicts.pop("skipped"), set(verdicts.values())) == (1, {0})
        counts = states(text, "nodefall_gameday_runs")
        assert (counts.pop("skipped"), set(counts.values())) == (1, {0})
        assert states(text, "nodefall_gameday_status") == {"finished": 1, "halted": 0, "running": 0}
        assert "nodefall_run_recover_seconds{" not in text, "it was of the run that held"
        ages = re.findall(r"^nodefall_(?:run|gameday)_end_timestamp_seconds\{.*\} (\S+)$", text, re.MULTILINE)
        assert len(ages) == 2
