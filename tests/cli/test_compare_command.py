"""``nodefall compare``: exit codes, first lines, reports, bad usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.command import command
from tests.kit.processes import ROOT, nodefall

RECORDINGS = ROOT / "tests" / "recordings"
CUT, OFF = RECORDINGS / "05-power-cut.jsonl.gz", RECORDINGS / "01-graceful-poweroff.jsonl.gz"


def test_a_recording_beside_its_own_first_lists(tmp_path: Path) -> None:
    done = nodefall("compare", CUT, "--seeds", "10", "--out", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["format"], document["exit_code"], document["simulated"]) == (1, 0, True)
    (found,) = document["comparisons"]
    assert found["predicted"]["outcomes"] == 10
    assert {row["standing"] for row in found["measures"]} == {"inside"}
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == document
    assert "SIMULATED" in (tmp_path / "out" / "comparison.html").read_text()
    assert (tmp_path / "out" / "comparison.md").read_text().startswith("# nothing unexpected: ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([OFF, CUT], 2, "05-power-cut.jsonl.gz cannot be compared with 01-graceful-poweroff.jsonl.gz: other actions"),
        ([CUT, "--with", OFF, "--prediction", "p.json"], 64, "--with cannot be combined with --prediction"),
        ([CUT, OFF, "--with", OFF], 64, "--with is for a single RUN, not for 2"),
        ([CUT, "--snapshot", "none.gz"], 2, "cannot be rehearsed: it has no experiment.yaml"),
        (["last"], 64, "no run 'last'"),
        ([CUT, "--prediction", "none.json"], 64, "none.json: cannot be read"),
        ([], 64, "RUN..."),
    ],
)
def test_what_cannot_be_compared(tmp_path: Path, arguments: list[str | Path], code: int, message: str) -> None:
    done = command("compare", *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr.replace("\n", " ")
    assert not done.stdout
