"""nodefall from Python: the five names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chaos.api
from chaos.api import Lab, judge, load, plan, run
from chaos.model.errors import BadInput, Refused, UsageError

ROOT = Path(__file__).parents[2]
EXPERIMENTS, RECORDINGS = ROOT / "experiments", ROOT / "tests" / "recordings"
CORDON = EXPERIMENTS / "cordon.yaml"
SLOW = ("kubernetes", "pydantic", "msgspec", "yaml", "paramiko", "click", "chaos.app")


def test_five_names_all_documented() -> None:
    assert chaos.api.__all__ == ["Lab", "judge", "load", "plan", "run"]
    assert all(getattr(chaos.api, name).__doc__ for name in chaos.api.__all__)


def test_importing_it_costs_nothing() -> None:
    code = f"import sys, chaos.api; sys.exit([n for n in {SLOW} if n in sys.modules] or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_load_tells_all_problems(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("apiVersion: nodefall.dev/v1alpha1\nkind: Experiment\nmetadata: {name: X}\nspec: {titel: y}\n")
    with pytest.raises(BadInput) as caught:
        load(path)
    assert len(caught.value.problems) > 1
    assert load(str(CORDON)).experiment.metadata.name == "cordon"


@pytest.mark.parametrize("as_loaded", [False, True])
def test_judge(as_loaded: bool) -> None:
    path = EXPERIMENTS / "graceful-poweroff.yaml"
    judged = judge(
        RECORDINGS / "01-graceful-poweroff.jsonl.gz",
        load(path) if as_loaded else str(path),
        bind={"victim": ["ra-worker"], "workload": ["demo"]},
    )
    assert (judged.result.status, judged.result.exit_code) == ("held", 0)
    assert judged.timeline.nodes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bind": {"victm": ["ra-worker"]}}, "bind: there is no target 'victm'"),
        ({"steps": {"poweroff": "power-cut"}}, "map: there is no step 'poweroff'"),
        ({"facts": {"kubelet.shutdownGracePeriod": "-5"}}, "fact kubelet.shutdownGracePeriod=-5: "),
    ],
)
def test_judge_knows_the_names(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        judge(RECORDINGS / "01-graceful-poweroff.jsonl.gz", EXPERIMENTS / "graceful-poweroff.yaml", **given)


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        (None, {"wrokers": 5}, "wrokers: Extra inputs are not permitted"),
        (None, {"workers": 0}, "workers: .* greater than or equal to 1"),
        (ROOT / "hosts" / "example.yaml", {}, "staging describes a cluster, not a lab"),
    ],
)
def test_there_is_no_such_lab(given: Path | None, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Lab(given, **settings)


def test_a_lab_that_is_not_up_is_not_reached() -> None:
    lab = Lab(ROOT / "hosts" / "lab.yaml", workers=5)
    for _ in range(2):
        with pytest.raises(UsageError, match="the lab is not up"):
            _ = lab.inventory
        lab.stop()


@pytest.mark.lab
def test_a_plan_is_done_on_a_lab(tmp_path: Path) -> None:
    with Lab(ROOT / "hosts" / "lab.yaml", workers=2, seed=3) as lab:
        kubeconfig = lab.kubeconfig
        assert kubeconfig.is_file()
        assert lab.inventory.limits.min_ready_nodes == 2, "as hosts/lab.yaml says"
        planned = plan(CORDON, lab.inventory, seed=7)
        assert (planned.experiment, planned.seed) == ("cordon", 7)
        done = run(planned, lab.inventory, reports=tmp_path)
        assert (done.result.status, done.result.exit_code) == ("held", 0), done.result.headline
        assert done.report.is_file()
        assert done.directory.is_relative_to(tmp_path)
        real = lab.inventory.cluster
        assert real is not None
        unmarked = lab.inventory.model_copy(update={"cluster": real.model_copy(update={"simulated": False})})
        with pytest.raises(Refused, match="would go down, and nobody has agreed"):
            run(EXPERIMENTS / "power-cut.yaml", unmarked, reports=tmp_path)
    assert not kubeconfig.exists(), "a lab leaves nothing behind"
