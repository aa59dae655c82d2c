"""Plug-ins from outside are built, installed into a virtual environment and run on the lab.

They are docs/plugin-template and tests/api/outside, an action that was written from the docs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.kit.processes import LAB, ROOT, WALL, environment, wait_for

pytestmark = pytest.mark.lab
TEMPLATE = ROOT / "docs" / "plugin-template"
OUTSIDE = ROOT / "tests" / "api" / "outside"
NO_INDEX = ("No matching distribution found", "Could not find a version", "Connection", "Temporary failure")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=10"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("wheels")
    command = [*PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(TEMPLATE), str(OUTSIDE)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=WALL, check=False)
    if built.returncode and any(text in built.stderr for text in NO_INDEX):
        pytest.skip("pip wheel: the package index with hatchling is unreachable")
    assert built.returncode == 0, built.stderr
    paths = sorted(folder.glob("*.whl"))
    assert [path.name.split("-")[0] for path in paths] == ["nodefall_stop_unit", "nodefall_sysctl"]
    return paths


@pytest.fixture(scope="module")
def python(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a virtual environment with nodefall, its dependencies and the plug-ins."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [*PIP, "--python", str(python), "install", "--no-deps", "--no-index", *map(str, wheels)],
        capture_output=True,
        timeout=WALL,
        check=True,
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "nodefall.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    return python


def nodefall(python: Path, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-m", "chaos", *map(str, arguments)],
        cwd=cwd,
        env=environment(cwd) | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=WALL,
        check=False,
    )


def test_it_is_listed_and_explained(python: Path, tmp_path: Path) -> None:
    assert "stop-unit" in nodefall(python, "list", "actions", cwd=tmp_path).stdout
    explained = nodefall(python, "explain", "stop-unit", cwd=tmp_path)
    assert (explained.returncode, "the unit to stop" in explained.stdout) == (0, True)


def test_it_is_proven_and_undone_on_the_lab(python: Path, tmp_path: Path) -> None:
    run = nodefall(python, "run", TEMPLATE / "experiment.yaml", "-i", TEMPLATE / "lab.yaml", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert [step["because"] for step in result["steps"]] != []
    assert (result["status"], [undo["proven"] for undo in result["undo"]]) == ("held", [True])
    assert nodefall(python, "undo", "last", cwd=tmp_path).returncode == 0


@pytest.mark.nightly
def test_a_run_that_is_killed_after_the_fault_is_undone(python: Path, tmp_path: Path) -> None:
    """The lab of a killed run stays for the undo; a second undo finds nothing to do."""
    run = subprocess.Popen(
        [str(python), "-m", "chaos", "run", str(OUTSIDE / "experiment.yaml"), "-i", str(LAB)],
        cwd=tmp_path,
        env=environment(tmp_path) | {"PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for(run, "proven: the kernel has the new value")
    run.send_signal(signal.SIGKILL)
    rest, _ = run.communicate(timeout=WALL)
    assert "undo:" not in rest
    first, second = (nodefall(python, "undo", "last", cwd=tmp_path) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert "undo: sysctl -w vm.swappiness=60" in first.stderr
    assert "undone: sysctl?key=vm.swappiness is 60" in first.stderr
    assert (second.returncode, ": undo:" in second.stderr) == (0, False), second.stderr
    assert "no pending undo" in second.stderr


def test_an_action_and_a_fact_of_the_same_name_are_both_explained(python: Path, tmp_path: Path) -> None:
    explained = nodefall(python, "explain", "sysctl", cwd=tmp_path).stdout
    assert ("sysctl (action)" in explained, "sysctl (host fact)" in explained) == (True, True)


def test_the_schema_has_the_action(python: Path, tmp_path: Path) -> None:
    assert "its value during the step" in nodefall(python, "schema", cwd=tmp_path).stdout


@pytest.mark.nightly
def test_a_unit_that_the_host_does_not_run_is_refused(python: Path, tmp_path: Path) -> None:
    text = (TEMPLATE / "experiment.yaml").read_text().replace("cron.service", "nosuch.service")
    (tmp_path / "nosuch.yaml").write_text(text)
    run = nodefall(python, "run", "nosuch.yaml", "-i", LAB, cwd=tmp_path)
    assert (run.returncode, "nosuch.service is not active" in run.stderr) == (4, True), run.stderr


def test_its_parameters_are_checked_with_line_numbers(python: Path, tmp_path: Path) -> None:
    text = (TEMPLATE / "experiment.yaml").read_text().replace("unit: cron.service", "unti: cron.service")
    (tmp_path / "typo.yaml").write_text(text)
    checked = nodefall(python, "validate", "typo.yaml", cwd=tmp_path)
    assert (checked.returncode, "typo.yaml:13" in checked.stderr, "unit" in checked.stderr) == (64, True, True)


def test_without_the_plug_in_its_action_is_unknown(tmp_path: Path) -> None:
    checked = nodefall(Path(sys.executable), "validate", TEMPLATE / "experiment.yaml", cwd=tmp_path)
    assert (checked.returncode, "unknown action" in checked.stderr) == (64, True), checked.stderr


def test_a_name_that_is_used_twice_names_both(python: Path, tmp_path: Path) -> None:
    """Another distribution claims the same name."""
    other = tmp_path / "other-1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (other / "entry_points.txt").write_text("[nodefall.actions]\npoweroff = chaos.faults.actions.power:POWEROFF\n")
    run = subprocess.run(
        [str(python), "-m", "chaos", "list", "actions"],
        cwd=tmp_path,
        env=environment(tmp_path) | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=WALL,
        check=False,
    )
    assert run.returncode == 64, run.stderr
    assert "duplicate plug-in name 'poweroff': chaos.faults.actions.power and" in run.stderr
    assert "other 1" in run.stderr


def test_the_templates_own_tests_pass(python: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(TEMPLATE / "tests")],
        cwd=tmp_path,
        env=environment(tmp_path) | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=WALL,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
