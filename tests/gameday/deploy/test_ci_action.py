"""action.yml and the GitLab component: their shell steps, run on a lab with what the service sets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.processes import plugin_options

ROOT = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
COMPONENT = list(yaml.safe_load_all((ROOT / "templates" / "nodefall" / "template.yml").read_text(encoding="utf-8")))
PINNED = re.compile(r"uses: ([\w/-]+)@(\w{40})  # (v\S+)")
# pip would download; gh says what it is called with, and answers with the comment that is there already
PYTHON = '#!/bin/sh\nif [ "$2" = pip ]; then echo "$@" >> "$CALLS"; else exec "$REAL" "$@"; fi\n'
GH = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in *--jq*) echo "$EARLIER"; exit ;; esac
for each; do case $each in body=@*) cp "${each#body=@}" "$COMMENT" ;; esac; done
"""


def pins(path: Path) -> set[tuple[str, ...]]:
    return set(PINNED.findall(path.read_text(encoding="utf-8")))


def test_an_action_is_pinned_to_one_commit_everywhere() -> None:
    workflows = [ROOT / "action.yml", ROOT / "deploy" / "ci" / "github-actions.yaml"]
    found = set().union(*map(pins, [*workflows, *(ROOT / ".github" / "workflows").glob("*.yaml")]))
    assert len({name for name, _, _ in found}) == len(found), sorted(found)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that has nothing but an experiment, and a PATH with what the runner has."""
    shutil.copytree(ROOT / "experiments" / "workloads", tmp_path / "experiments" / "workloads")
    shutil.copy(ROOT / "experiments" / "cordon.yaml", tmp_path / "experiments")
    (tmp_path / "bin").mkdir()
    (tmp_path / "temp").mkdir()
    for name, text in (("python", PYTHON), ("gh", GH)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def environment(repository: Path, **more: str) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "NODEFALL"))}
    return {
        **inherited,
        "PATH": f"{repository / 'bin'}:{Path(sys.executable).parent}:{inherited['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTEST_ADDOPTS": " ".join(plugin_options()),
        "REAL": sys.executable,
        "CALLS": str(repository / "calls.txt"),
        "COMMENT": str(repository / "comment.md"),
        "EARLIER": "",
        "RUNNER_TEMP": str(repository / "temp"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(repository / "summary.md"),
        "GITHUB_WORKFLOW": "checks",
        "GITHUB_JOB": "nodes",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "shop/web",
        "GITHUB_RUN_ID": "7",
        **more,
    }


def run_steps(repository: Path, *names: str, earlier: str = "", **given: str) -> int:
    """Run these steps of the action as a runner does; the exit code of the first that fails."""
    inputs = {name: str(each["default"]) for name, each in ACTION["inputs"].items()} | given
    values = {f"inputs.{name}": value for name, value in inputs.items()} | {
        "inputs.inventory || format('{0}/nodefall-inventory.yaml', runner.temp)": str(
            repository / "temp" / "nodefall-inventory.yaml"
        ),
        "github.event.pull_request.number": "12",
    }
    for step in (each for each in ACTION["runs"]["steps"] if each.get("name") in names):
        own = {
            key: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: values[m[1]], text) for key, text in step.get("env", {}).items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=repository,
            env=environment(repository, EARLIER=earlier, **own),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        sys.stdout.write(done.stdout + done.stderr)
        if done.returncode:
            return done.returncode
    return 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "experiments"), [("pytest", "experiments"), ("run", "experiments/cordon.yaml cordon")]
)
def test_the_action_judges_and_says_so(repository: Path, runner: str, experiments: str) -> None:
    steps = ("Install", "Cluster", "Run", "Summary", "Comment")
    assert run_steps(repository, *steps, runner=runner, experiments=experiments) == 0
    runs = len(list((repository / "reports" / "cordon").glob("*/report.html")))
    assert runs == len(experiments.split())
    summary, comment = ((repository / name).read_text() for name in ("summary.md", "comment.md"))
    assert f"**{runs} held**" in summary
    assert comment.startswith("<!-- nodefall: checks, nodes -->\n")
    assert f"**{runs} held**" in comment
    assert "(https://github.example/shop/web/actions/runs/7)" in comment
    install, search, post = (repository / "calls.txt").read_text().splitlines()
    assert install == f"-m pip install --quiet {ROOT} pytest"
    assert "repos/shop/web/issues/12/comments" in search
    assert "PATCH" not in post
    assert run_steps(repository, "Comment", earlier="99") == 0
    assert "--method PATCH repos/shop/web/issues/comments/99" in (repository / "calls.txt").read_text()


@pytest.mark.parametrize(
    ("step", "given", "code"),
    [
        ("Cluster", {"cluster": "kinds"}, 64),
        ("Run", {"runner": "make"}, 64),
        ("Run", {"runner": "run", "experiments": "missing.yaml"}, 64),
        ("Run", {"runner": "run", "experiments": "$(touch${IFS}here)"}, 64),
    ],
)
def test_the_action_refuses(repository: Path, step: str, given: dict[str, str], code: int) -> None:
    assert run_steps(repository, "Cluster", **({} if step == "Cluster" else {"cluster": "lab"})) == 0
    assert run_steps(repository, step, **given) == code
    assert not (repository / "here").exists()


@pytest.mark.slow
def test_the_component_judges(repository: Path) -> None:
    ((name, job),) = COMPONENT[1].items()
    inputs = COMPONENT[0]["spec"]["inputs"]
    assert name == "$[[ inputs.job-name ]]"
    variables = {
        key: re.sub(r"\$\[\[ inputs\.(\S+) \]\]", lambda m: inputs[m[1]]["default"], value)
        for key, value in job["variables"].items()
    }
    script = "\n".join([job["before_script"][-1], *job["script"]])
    command = ["bash", "-eo", "pipefail", "-c", script]
    done = subprocess.run(
        command,
        cwd=repository,
        env=environment(repository, **variables),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (repository / "calls.txt").read_text() == "-m pip install --quiet nodefall pytest\n"
    for path in job["artifacts"]["paths"]:
        assert (repository / path).exists(), path
