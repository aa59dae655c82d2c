"""A recording that is nested too deep or has a stray byte is bad input, with its line and column."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from chaos.cli.app import main

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "recordings" / "12-partition-ipv4-only.jsonl.gz"
EXPERIMENT = ROOT / "experiments" / "graceful-poweroff.yaml"
DEPTH = 200_000
START = b'{"t":9e9,"kind":"host","type":"x","object":'
# the line, its column, what is wrong with it
DEEP = "nested more than 64 levels deep"
DAMAGED = [
    (START + b"[" * DEPTH + b"]" * DEPTH + b',"node":"n"}', len(START) + 63 + 1, DEEP),
    (START + b"[" * 64 + b"]" * 64 + b',"node":"n"}', len(START) + 63 + 1, DEEP),
    (START + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}", len(START) + 63 * 5 + 1, DEEP),
    (START + b'"[[[\\"[[[ \xff"}', len(START) + 11, "it is not UTF-8"),
    (START + b'"a"\x00}', len(START) + 4, "is not an entry of a recording"),
]


@pytest.mark.parametrize("newline", [b"\n", b""])
@pytest.mark.parametrize("command", ["judge", "replay"])
@pytest.mark.parametrize(("line", "column", "why"), DAMAGED)
def test_position(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    line: bytes,
    column: int,
    why: str,
    newline: bytes,
) -> None:
    if not newline and "nested" not in why:
        pytest.skip("a last line without a newline is a truncated one")
    path = tmp_path / "r.jsonl"
    text = gzip.decompress(RECORDING.read_bytes())
    path.write_bytes(text + line + newline)
    arguments = ["judge", str(path), str(EXPERIMENT)] if command == "judge" else ["lab", "replay", "--count", str(path)]
    assert main(arguments) == 64
    error = capsys.readouterr().err
    assert f"{path}:{len(text.splitlines()) + 1}:{column}: " in error
    assert why in error


def test_an_object_that_is_no_json_in_a_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(gzip.decompress(RECORDING.read_bytes()) + START + b'{"a":1e999}}\n')
    assert main(["lab", "replay", "--count", str(path)]) == 64
    assert f"{path}:" in capsys.readouterr().err
