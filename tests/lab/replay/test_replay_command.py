"""The command that compares the lab with a recording: ``python -m tools.replay``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tools.replay.__main__ import main

PARTITION = Path(__file__).parents[2] / "recordings" / "12-partition-ipv4-only.jsonl.gz"


def changed(path: Path, old: str, new: str) -> Path:
    text = gzip.decompress(PARTITION.read_bytes()).decode()
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_recording_that_matches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(PARTITION)]) == 0
    assert capsys.readouterr() == ("30 of 30 states matched\n", "")


def test_one_that_does_not_prints_every_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both families are cut in the lab; the recording still shows a node that stays Ready."""
    path = changed(tmp_path / "r.jsonl", '"families":["ipv4"]', '"families":["ipv4","ipv6"]')
    assert main([str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"recording", "matched", "states", "seed", "differences", "findings"}
    assert (report["states"], report["matched"] < 30) == (30, True)
    assert all(set(item) == {"subject", "t", "text"} for item in report["differences"])
    assert main([str(path)]) == 1
    words = capsys.readouterr().out.splitlines()
    assert len(words) == len(report["differences"]) + 1
    assert words[-1] == f"{report['matched']} of 30 states matched"


def test_count_needs_no_lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(PARTITION), "--count"]) == 0
    assert capsys.readouterr().out == "30 states\n"
    path = changed(tmp_path / "r.jsonl", '"type":"partition"', '"type":"earthquake"')
    assert main([str(path), "--count", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == 30


def test_what_the_lab_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed(tmp_path / "r.jsonl", '"type":"partition"', '"type":"earthquake"')
    assert main([str(path)]) == 0, "a partition of one family changes no state"
    lines = capsys.readouterr().out.splitlines()
    assert "action earthquake is not replayed: the lab does not simulate it" in lines


WHOLE = gzip.decompress(PARTITION.read_bytes()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense\n",
        '{"t": 1, "kind": "meta", "type": "recording", "object": {}}\n',
        WHOLE + '{"t":9e9,"kind":"host","type":"x","object":{"a":1e999}}\n',
    ],
)
def test_bad_input(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) == 64
    output = capsys.readouterr()
    assert str(path) in output.err
    assert output.out == ""


def test_no_such_file(tmp_path: Path) -> None:
    assert main([str(tmp_path / "none.jsonl.gz")]) == 64
