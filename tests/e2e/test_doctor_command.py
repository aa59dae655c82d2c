"""``nodefall doctor`` and ``--anyway`` as processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.processes import EXPERIMENTS, LAB, ROOT, nodefall, result_of, write_experiment

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]  # several commands each
GRACE_ZERO = ROOT / "hosts" / "lab-grace-zero.yaml"


def test_the_stock_lab_has_no_findings(tmp_path: Path) -> None:
    done = nodefall("doctor", "-i", LAB, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [f for f in report["findings"] if f["severity"] in {"refusal", "warning"}] == []
    assert {f["check"] for f in report["findings"]} >= {
        "logind",
        "sudo",
        "power-recovery",
        "webhooks",
        "self-protection",
        "clock",
    }
    assert report["hosts"] == ["worker-1", "worker-2", "worker-3"]
    assert report["possible"]["graceful-poweroff"] == report["hosts"]
    # They need other labs: reported, without effect on the exit code.
    assert {"zone-outage", "grace-period-zero"} <= set(report["impossible"])


def test_a_refusal_is_reported_with_a_hint(tmp_path: Path) -> None:
    poweroff = EXPERIMENTS / "graceful-poweroff.yaml"
    done = nodefall("doctor", "-i", GRACE_ZERO, poweroff, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    first, second, third, *_ = done.stdout.splitlines()[2:]
    assert first.split() == [
        "refusal", "kubelet-config", "worker-1,", "worker-2,", "worker-3:",
        "shutdownGracePeriod", "is", "0,", "so", "no", "shutdown", "is", "graceful",
    ]  # fmt: skip
    assert second.strip() == "hint: set it in the kubelet's configuration, restart the kubelet"
    assert third.strip() == "affects: graceful-poweroff"
    assert done.stdout.endswith("\n0 of 1 experiments can be run here\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no inventory"),
        (("-i", str(LAB), "none.yaml"), "none.yaml"),
        (("-i", str(LAB), *[str(EXPERIMENTS / "cordon.yaml")] * 2), "two experiments have the name cordon"),
    ],
)
def test_bad_usage(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = nodefall("doctor", *arguments, cwd=tmp_path)
    assert done.returncode == 64, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def experiment(directory: Path) -> Path:
    """A cordon with a requirement that it does not need."""
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {
        "title": "a cordon",
        "requires": {"kubelet": {"shutdownGracePeriod": ">0"}},
        "targets": {"victim": {"role": "worker"}},
        "steadyState": [ready],
        "method": [{"name": "cordon", "action": "cordon", "target": "victim"}],
        "hypothesis": [ready | {"always": {"for": "5s"}}],
    }
    return write_experiment(directory / "strict.yaml", spec)


def test_an_override_is_in_the_plan_the_report_and_the_recording(tmp_path: Path) -> None:
    strict = experiment(tmp_path)
    refused = nodefall("run", strict, "-i", GRACE_ZERO, cwd=tmp_path)
    assert refused.returncode == 4
    assert "requires kubelet.shutdownGracePeriod >0" in refused.stderr
    assert "--anyway overrides this; the run is then inconclusive at best" in refused.stderr
    done = nodefall("run", strict, "-i", GRACE_ZERO, "--anyway", "--json", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    result = result_of(done)
    overridden = (
        "preflight check failed and was overridden with --anyway: kubelet-requirements: the experiment requires"
    )
    sentence = "A failed preflight check was overridden with --anyway: kubelet-requirements"
    assert result["headline"] == f"{result['tally']}: {sentence}"
    assert overridden in result["hypothesis"][0]["because"]
    assert result["notes"][0].startswith(overridden)
    (directory,) = [path.parent for path in tmp_path.glob("reports/*/*/plan.json")]  # the refused run has none
    planned = json.loads((directory / "plan.json").read_text())
    assert [text.partition(":")[0] for text in planned["overridden"]] == ["kubelet-requirements"]
    assert overridden in (directory / "report.md").read_text().replace("\\", "")
    again = nodefall("judge", directory / "recording.jsonl.gz", strict, cwd=tmp_path)
    assert again.returncode == 2
    assert "overridden with --anyway" in again.stdout + again.stderr
