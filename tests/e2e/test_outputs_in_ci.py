"""Names with commands to CI services, with mentions and of 150 targets, as a CI job prints and shows them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.forges import COMMENT, Rendered
from tests.kit.processes import WALL, environment

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * WALL)]
FIELD = Path(__file__).parents[1] / "kit" / "field"
COMMAND = re.compile(r"^\s*::\S|::error|##\[|##vso\[", re.MULTILINE)


def in_ci(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {**environment(cwd), "CI": "true", "GITHUB_ACTIONS": "true"}
    command = [sys.executable, "-m", "chaos", *arguments]
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=WALL, check=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder, and a run of the experiment whose names have commands and mentions."""
    folder = tmp_path_factory.mktemp("ci")
    for name in ("nasty.yaml", "lab.yaml"):
        shutil.copy(FIELD / name, folder)
        (folder / name).chmod(0o644)
    text = (folder / "nasty.yaml").read_text().replace("##vso[task.logissue]", "##vso[task.logissue] ##[error] @team")
    (folder / "nasty.yaml").write_text(text)
    return folder, in_ci(folder, "run", "nasty.yaml", "-i", "lab.yaml", "--seed", "1")


def test_no_printed_line_is_a_command(ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = ran
    assert done.returncode == 1, done.stderr
    assert ": :error::x # #vso[task.logissue] # #[error]" in done.stdout + done.stderr
    more = [("show", "last"), ("show", "last", "--json"), ("report", "last", "--format", "markdown"), ("runs",)]
    for printed in (done, *(in_ci(folder, *arguments) for arguments in more)):
        assert printed.returncode in (0, 1), printed.stderr
        assert COMMAND.findall(printed.stdout + printed.stderr) == []
    shown = json.loads(in_ci(folder, "show", "last", "--json").stdout)
    assert any("::error::x ##vso[task.logissue] ##[error]" in each["name"] for each in shown["hypothesis"])


def test_a_file_gets_the_text_as_it_is(ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = ran
    variables = {**environment(folder), "CI": "true"}
    with (folder / "junit.xml").open("wb") as file:
        command = [sys.executable, "-m", "chaos", "report", "last", "--format", "junit"]
        subprocess.run(command, cwd=folder, env=variables, stdout=file, timeout=WALL, check=True)
    assert "##vso[task.logissue] ##[error] @team" in (folder / "junit.xml").read_text()


def test_no_mention_is_alive(ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = ran
    (report,) = folder.glob("reports/nasty/*/report.md")
    summary = in_ci(folder, "runs", "--markdown").stdout
    for source in (report.read_text(), summary):
        rendered = Rendered(source)
        assert "@\u200bteam" in "".join(rendered.nodes)
        assert rendered.references == []
        assert not {"script", "a"} & {*rendered.elements}
    assert summary.startswith("**1 violated**\n\n| run |")


@pytest.mark.nightly  # the lab has 200 workers
def test_150_targets_fit_into_a_comment(tmp_path: Path) -> None:
    for name in ("many-targets.yaml", "lab200.yaml"):
        shutil.copy(FIELD / name, tmp_path)
        (tmp_path / name).chmod(0o644)
    done = in_ci(tmp_path, "run", "many-targets.yaml", "-i", "lab200.yaml", "--seed", "1", "--yes")
    assert done.returncode == 1, done.stderr
    (report,) = tmp_path.glob("reports/nasty150/*/report.md")
    source = report.read_text()
    assert len(source) <= COMMENT
    assert "did not fit here" in source
    assert source.index("| ✗ violated |") < source.index("<details><summary>Steps</summary>")
    assert os.path.getsize(report) > COMMENT / 4
