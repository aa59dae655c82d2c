"""``nodefall report --open``, with a program in place of the browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.core.result import RESULT_VERSION, RunResult
from chaos.core.store.run_directory import RECORDING, RESULT, RUN, RunInfo, create, save
from chaos.core.verdict import Status

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with a result and a recording."""
    directory = create(tmp_path / "reports", "e", 0.0)
    result = RunResult(
        RESULT_VERSION, "r", "e", "t", Status.HELD, 0, "held: all", False, "v1.36.2", "u", 0, 1, {}, (), (), ()
    )
    save(directory, RUN, RunInfo("r", "e", 0.0, {}))
    save(directory, RESULT, result)
    shutil.copy(ROOT / "tests" / "recordings" / "25-two-nodes-of-a-zone.jsonl.gz", directory / RECORDING)
    return directory


def report(run: Path, *arguments: str, browser: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BROWSER": browser, "PATH": "/usr/bin:/bin"}
    environment.pop("DISPLAY", None)
    command = [sys.executable, "-m", "chaos", "report", str(run), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_open_gives_the_page_to_the_browser(run: Path, tmp_path: Path) -> None:
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    program.chmod(0o755)
    done = report(run, "--open", browser=f"{program} %s")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(run / "report.html")
    assert (tmp_path / "opened").read_text().strip() == (run / "report.html").as_uri()


def test_open_without_a_browser_names_the_file(run: Path) -> None:
    done = report(run, "--open", browser="/bin/false %s")
    assert done.returncode == 64
    assert "no browser found" in done.stderr
    assert str(run / "report.html") in done.stderr.replace("\n", "")


def test_open_with_a_format_is_refused(run: Path) -> None:
    done = report(run, "--open", "--format", "json", browser="/bin/false %s")
    assert done.returncode == 64
    assert "--open is for all formats" in done.stderr
    assert not (run / "report.html").exists()
