"""The real command line, as a process, and labs that outlive it."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
EXPERIMENTS, LAB = ROOT / "experiments", ROOT / "hosts" / "lab.yaml"
WALL = 300  # seconds that any one command may take; a busy machine is slow


def environment(cwd: Path) -> dict[str, str]:
    """Labs that stay are kept below ``cwd``."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NODEFALL", "PYTEST"))}
    return {**inherited, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "XDG_STATE_HOME": str(cwd / "state")}


def nodefall(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "chaos", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment(cwd), capture_output=True, text=True, timeout=WALL, check=False
    )


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits only for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def free_port(address: str = "127.0.0.1", kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """One that no one takes by chance until a server binds it: below those that Linux gives to clients."""
    while True:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as sock, suppress(OSError):
            sock.bind((address, 10_000 + secrets.randbelow(20_000)))
            return int(sock.getsockname()[1])


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something outside of this process, or for a thread with a real clock; a busy machine is slow."""
    end, tick = time.monotonic() + seconds, threading.Event()
    while not holds():
        assert time.monotonic() < end, f"it did not happen in {seconds:g} s"
        tick.wait(0.02)


def write_experiment(path: Path, spec: dict[str, Any]) -> Path:
    """An experiment file (JSON is YAML), named after the file; one that others may write to would be refused."""
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": path.stem}}
    path.write_text(json.dumps(head | {"spec": spec}))
    path.chmod(0o644)
    return path


def plugin_options() -> list[str]:
    """For pytest; an editable installation may be older than the entry point of the plug-in."""
    known = [entry.name for entry in entry_points(group="pytest11")]
    return [] if "nodefall" in known else ["-p", "chaos.api.pytest.hooks"]


def start(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "chaos", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=cwd, env=environment(cwd), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )


def wait_for(process: subprocess.Popen[str], text: str) -> list[str]:
    """Read its lines until one holds ``text``."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"it ended without {text!r}:\n{''.join(lines)}")


@contextmanager
def lab(cwd: Path, *options: str | Path, **settings: Any) -> Iterator[Path]:
    """A dedicated lab; yields the inventory that reaches it. ``settings`` replace keys of ``lab`` in hosts/lab.yaml."""
    made = LAB
    if settings:
        document = yaml.safe_load(LAB.read_text(encoding="utf-8"))
        document["lab"] |= settings
        made = cwd / "changed-lab.json"
        made.write_text(json.dumps(document), encoding="utf-8")
    process = start("lab", "up", made, "--out", "lab.json", "--foreground", *options, cwd=cwd)
    try:
        wait_for(process, "the lab is up")
        yield cwd / "lab.json"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WALL)


def verdicts(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {v["name"]: v for part in ("hypothesis", "recovery") for v in result[part]}


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def until_undone(recording: Path) -> float:
    """Seconds of cluster time from the first observation of a node that is not Ready to the start of the first undo."""
    lines = _lines(recording)
    acted = _operations(lines)
    begin = next(t for t, phase in acted if phase == "begin")
    seen = next(line["t"] for line in lines if line["kind"] == "nodes" and line["t"] >= begin and not _ready(line))
    return float(next(t for t, phase in acted if phase == "undo") - seen)


def operations(recording: Path) -> list[tuple[float, str]]:
    """Time, in cluster time, and phase of all that a run did: begin, injected, undo and so on."""
    return _operations(_lines(recording))


def _lines(recording: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(recording.read_bytes()).splitlines()]


def _operations(lines: list[dict[str, Any]]) -> list[tuple[float, str]]:
    return [(line["t"], line["object"]["phase"]) for line in lines if line["kind"] == "action"]


def _ready(line: dict[str, Any]) -> bool:
    conditions = line["object"].get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
