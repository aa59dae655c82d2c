"""Whatever is in the place of a run's files, no command hangs or ends as a bug of nodefall."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import msgspec
import pytest

from chaos.cli.app import main
from chaos.core.plan import Plan
from chaos.core.store.journal import NAME
from chaos.core.store.run_directory import EXPERIMENT, PLAN, RECORDING, RESULT, RUN, save
from tests.kit.stored_runs import NOW, result_of, store, within

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests" / "recordings" / "12-partition-ipv4-only.jsonl.gz"
FILES = [RUN, PLAN, RESULT, EXPERIMENT, RECORDING, NAME]
COMMANDS = [["runs"], ["show", "last"], ["trend", "e"], ["undo", "--list"], ["report", "last"], ["judge", "last"]]
SECONDS = 60


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def numbers(value: bytes) -> Callable[[Path], None]:
    """Each number of the file is ``value``."""

    def replace(path: Path) -> None:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        changed = re.sub(rb"(?<=[:\[, ])\d+(?:\.\d+)?(?=[,\]}\s])", value, text)
        path.write_bytes(gzip.compress(changed) if path.suffix == ".gz" else changed)

    return replace


def versions(path: Path) -> None:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    changed = re.sub(rb'"resourceVersion":"\d+"', b'"resourceVersion":"' + b"9" * 5000 + b'"', text)
    path.write_bytes(gzip.compress(changed[: 4 << 20]) if path.suffix == ".gz" else changed)


def empty_lines(path: Path) -> None:
    path.write_bytes(gzip.compress(b"\n" * (64 << 20)))


def same_line(path: Path) -> None:
    """Of a gzip that is a thousandth of its content."""
    text = gzip.decompress(SOURCE.read_bytes()).split(b"\n")
    path.write_bytes(gzip.compress(text[0] + b"\n" + (text[1] + b"\n") * (220_000_000 // len(text[1]))))


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 200_000)


HOSTILE: dict[str, Callable[[Path], None]] = {
    "pipe": pipe, "device": device, "directory": directory, "deep": deep, "resourceVersion": versions,
    "1e15": numbers(b"1e15"), "-1e300": numbers(b"-1e300"), "5000 digits": numbers(b"9" * 5000),
}  # fmt: skip


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """With one run that has all its files."""
    run = store(tmp_path / "reports", result_of(within(20.0)))
    shutil.copy(SOURCE, run / RECORDING)
    save(run, PLAN, Plan("e-1", "e", "hash", "cluster", NOW, 7, (), (), source="none.yaml"))
    shutil.copy(ROOT / "experiments" / "graceful-poweroff.yaml", run / EXPERIMENT)
    assert [path.name for path in run.iterdir() if path.name in FILES] != []
    return tmp_path / "reports"


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    def fail(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {SECONDS} s")

    former = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_run(reports: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str) -> None:
    (path,) = reports.glob(f"*/*/{name}")
    HOSTILE[kind](path)
    for arguments in COMMANDS:
        code = main([*arguments, "--reports", str(reports)])
        assert code in (0, 1, 2, 3, 4, 64), (arguments, capsys.readouterr().err[-1000:])


@pytest.mark.parametrize("make", [empty_lines, same_line], ids=["empty lines", "one line many times"])
def test_a_recording_that_grows_when_it_is_read(
    reports: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    (path,) = reports.glob(f"*/*/{RECORDING}")
    make(path)
    assert path.stat().st_size < 2 << 20
    for arguments in (["judge", str(path), str(ROOT / "experiments" / "graceful-poweroff.yaml")], ["report", "last"]):
        assert main([*arguments, *(["--reports", str(reports)] if arguments[0] == "report" else [])]) == 64
        assert re.search("empty lines|times its size", capsys.readouterr().err)


def test_the_numbers_of_a_run_are_there_to_be_changed(reports: Path) -> None:
    """Otherwise the tests above would try nothing."""
    for name in (RUN, PLAN, RESULT):
        (path,) = reports.glob(f"*/*/{name}")
        before = msgspec.json.decode(path.read_bytes())
        HOSTILE["1e15"](path)
        assert msgspec.json.decode(path.read_bytes()) != before
