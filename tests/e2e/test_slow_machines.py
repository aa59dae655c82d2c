"""Machines whose containers start late: slack of the inventory and the baseline of the run, live and judged again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import lab, nodefall, result_of, verdicts, write_experiment

pytestmark = pytest.mark.lab
START = 6  # seconds


def deployment() -> dict[str, Any]:
    labels, behaviour = {"app": "web"}, {"lab.nodefall.dev/starts-after": str(START)}
    container = {"name": "c", "image": "busybox:1.36", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": labels, "annotations": behaviour}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def experiment(folder: Path) -> Path:
    """Two more pods are to be available within 3 s; without the baseline and slack that is too soon."""
    (folder / "web.yaml").write_text(json.dumps(deployment()))
    more = {"kind": "deployment", "namespace": "workload", "name": "web", "replicas": 3}
    available = {
        "assert": "workload-available",
        "with": {"namespace": "workload"},
        "after": "grow + 1s",
        "within": "3s",
    }
    spec = {
        "title": "t",
        "workload": {"manifests": ["web.yaml"]},
        "steadyState": [{"assert": "workload-available", "with": {"namespace": "workload"}}],
        "method": [{"name": "grow", "action": "scale", "with": more}],
        "hypothesis": [
            {"name": "strict"} | available,
            {"name": "loose", "timing": "loose"} | available,
            {"name": "baseline", "baseline": "3x"} | available,
        ],
        "recovery": {"within": "5m", "timing": "loose"},
    }
    return write_experiment(folder / "slow.yaml", spec)


def with_slack(inventory: Path, slack: str) -> Path:
    document = json.loads(inventory.read_text())
    document["cluster"]["slack"] = slack
    changed = inventory.with_name("slow-lab.json")
    changed.write_text(json.dumps(document))
    return changed


def test_slow_machines(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    with lab(tmp_path) as inventory:
        slow = with_slack(inventory, "4x")
        planned = nodefall("plan", file, "-i", slow, cwd=tmp_path)
        quick = result_of(nodefall("run", file, "-i", inventory, "--json", cwd=tmp_path))
        loose = result_of(nodefall("run", file, "-i", slow, "--json", cwd=tmp_path))
    assert planned.stdout.splitlines()[-3:] == [
        "deadline loose: 3s, times 4 (slack)",
        "deadline baseline: 3s, at least 3 x the slowest start of the workload",
        "deadline of the recovery: 5m, times 4 (slack)",
    ]
    for result, held in ((quick, "violated"), (loose, "held")):
        statuses = {name: verdicts(result)[name]["status"] for name in ("strict", "loose", "baseline")}
        assert statuses == {"strict": "violated", "loose": held, "baseline": "held"}, result
    found = verdicts(loose)
    assert found["loose"]["expected"].endswith("within 12s of grow + 1s (3s, with slack 4)")
    assert f"(3s, with baseline 3 x {START}." in found["baseline"]["expected"]
    assert "slack 4: deadlines with timing: loose are that much longer" in loose["notes"]
    for directory in (tmp_path / "reports" / "slow").iterdir():
        saved = json.loads((directory / "result.json").read_text())
        again = result_of(nodefall("judge", directory, file, "--json", cwd=tmp_path))
        for part in ("hypothesis", "recovery"):
            keys = ("name", "status", "because", "expected", "deadline")
            assert [[v[k] for k in keys] for v in again[part]] == [[v[k] for k in keys] for v in saved[part]]
    assert len(list((tmp_path / "reports" / "slow").iterdir())) == 2
