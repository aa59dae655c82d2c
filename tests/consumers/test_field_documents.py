"""Markdown, CI logs and deployed game days from public reports of other tools' users."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.consumers.conftest import HERE
from tests.kit.command import command
from tests.kit.forges import COMMENT, Rendered
from tests.kit.processes import nodefall

FIELD = HERE / "field"
IMAGE = "example.com/nodefall@sha256:" + "0" * 64


@pytest.mark.slow
@pytest.mark.lab
@pytest.mark.timeout(900)
def test_a_report_about_150_targets_is_a_comment(tmp_path: Path) -> None:
    done = nodefall("run", FIELD / "many-targets.yaml", "-i", FIELD / "lab200.yaml", "--seed", "1", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (report,) = tmp_path.glob("reports/nasty150/*/report.md")
    text = report.read_text(encoding="utf-8")
    targets = json.loads(report.with_name("result.json").read_text())["targets"]["victim"]
    assert len(targets) == 150
    assert len(text) <= COMMENT
    assert "violated" in text
    assert Rendered(text).references == []


@pytest.mark.slow
@pytest.mark.lab
def test_names_are_no_commands_in_a_log_and_no_mentions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nasty.yaml").write_text(
        (FIELD / "nasty.yaml").read_text(encoding="utf-8").replace("##vso[", "##[error]y ##vso["), encoding="utf-8"
    )
    monkeypatch.setenv("CI", "true")
    done = nodefall("run", "nasty.yaml", "-i", FIELD / "lab.yaml", "--seed", "1", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    printed = done.stdout + done.stderr
    assert "vso" in printed
    assert not re.search(r"##vso\[|##\[|^\s*::", printed, re.MULTILINE)
    (report,) = tmp_path.glob("reports/nasty/*/report.md")
    text = report.read_text(encoding="utf-8")
    assert "vso" in text
    assert not re.search(r"##vso\[|##\[|^\s*::", text, re.MULTILINE)
    assert Rendered(text).references == []


@pytest.fixture
def day(tmp_path: Path) -> Path:
    for name in ("deploy.yaml", "inventory.yaml"):
        shutil.copy(FIELD / name, tmp_path)
    shutil.copy(FIELD / "st.yaml", tmp_path / "x.yaml")
    return tmp_path / "deploy.yaml"


def test_printed_commands_name_files_of_the_home_for_every_shell(day: Path) -> None:
    done = command("gameday", "deploy", day.name, "-i", "inventory.yaml", "--image", IMAGE, cwd=day.parent)
    assert done.returncode == 0, done.stderr
    assert '--from-file=chaos="$HOME"/.ssh/chaos --from-file=known_hosts="$HOME"/.ssh/known_hosts' in done.stderr
    assert "=~" not in done.stderr
    (job,) = (each for each in yaml.safe_load_all(done.stdout) if each["kind"] == "CronJob")
    assert (job["spec"]["schedule"], job["spec"]["timeZone"]) == ("0 10 * * 0,6", "UTC")


@pytest.mark.parametrize("zone", ["localtime", "local", "posixrules"])
def test_a_zone_that_depends_on_the_machine_is_refused(day: Path, zone: str) -> None:
    day.write_text(day.read_text().replace("UTC", zone))
    done = command("validate", str(day), cwd=day.parent)
    assert (done.returncode, f"unknown time zone {zone!r}" in done.stderr) == (64, True), done.stderr
