"""Lab processes: started for a command, reached through an ordinary inventory, stopped afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import chaos
from chaos.app.lab_spec import lab_spec
from chaos.core.clock import SystemClock
from chaos.core.errors import Exit, NodefallError, Refused, UsageError
from chaos.core.inventory import Inventory
from chaos.core.lab_settings import Lab
from chaos.engine.stop import defer_signals

_READY_TIMEOUT = 30.0  # wall seconds
_READY_PER_NODE = 0.1
_SNAPSHOT_TIMEOUT = 600.0  # to restore thousands of pods
_STOP_TIMEOUT = 10.0
_UNAVAILABLE = 69  # exit code of chaos.lab if its port is in use
LOG = "lab.log"
MARK = "NODEFALL_LAB"


@dataclass(frozen=True, slots=True)
class LabServeOptions:
    """Options of a lab process that are not part of the inventory.

    ``speed``: simulated seconds per second of a free-running lab; None for lockstep. ``directory``: a temporary one by
    default. ``lock_fd``: a descriptor that the process keeps open. ``mark``: the value of MARK in its environment.
    ``snapshot``: a file whose cluster the lab copies, instead of the inventory's nodes. ``on_start`` is called with the
    process ID, ``meanwhile`` while the lab starts.
    """

    name: str = "lab"
    speed: float | None = None
    port: int = 0
    directory: Path | None = None
    lock_fd: int | None = None
    mark: str = ""
    snapshot: Path | None = None
    on_start: Callable[[int], None] = lambda _: None
    meanwhile: Callable[[], None] = lambda: None

    def arguments(self, lab: Lab) -> list[str]:
        """The command-line arguments of ``chaos.lab``."""
        pace = ["--careful", "--pace", f"{lab.speed:g}"] if self.speed is None else ["--speed", f"{self.speed:g}"]
        directory = [f"--directory={self.directory}"] if self.directory else []
        snapshot = [f"--snapshot={self.snapshot.absolute()}"] if self.snapshot else []
        return [*pace, "--name", f"nodefall-{self.name}", "--port", str(self.port), *directory, *snapshot]


class RunningLab:
    """A lab process. ``inventory`` describes it like any cluster; ``facts`` is its ready line."""

    def __init__(
        self, process: subprocess.Popen[bytes], facts: dict[str, Any], stderr: IO[bytes], name: str = "lab"
    ) -> None:
        self._process, self._errors = process, stderr
        self.facts, self.inventory = facts, make_inventory(facts, name)
        self.detached = False

    @property
    def output(self) -> str:
        """The stderr of the process, for errors."""
        return _read_stderr(self._errors)

    @property
    def returncode(self) -> int | None:
        """The exit code, None while the process runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> bool:
        """Whether the process ends within ``seconds``."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.returncode is not None

    def detach(self) -> None:
        """Let the lab outlive this process. Raises NodefallError if it has ended."""
        try:
            _write_stdin(self._process, b"detach\n")
        except BrokenPipeError as error:
            raise NodefallError(f"the lab ended unexpectedly: {self.output or 'it printed nothing'}") from error
        self.detached = True

    def stop(self) -> None:
        """Terminate the process. Idempotent."""
        _terminate(self._process)


@contextmanager
def start_lab(lab: Lab, seed: int | None = None, options: LabServeOptions | None = None) -> Iterator[RunningLab]:
    """Run a lab for the block, and stop it afterwards unless it was detached.

    Raises NodefallError with the output of the process if it does not become ready.
    """
    options = options or LabServeOptions()
    with closing(SystemClock()) as clock, _log(options.directory) as stderr:
        process, running = None, None
        try:
            with defer_signals():  # interrupted within Popen, the process would be leaked
                process = _start(lab, options, stderr)
            options.on_start(process.pid)
            spec = lab_spec(lab, seed, clock.now())
            with contextlib.suppress(BrokenPipeError):  # the process has died: its output is reported below
                _write_stdin(process, json.dumps(spec).encode() + b"\n")
            options.meanwhile()
            timeout = _SNAPSHOT_TIMEOUT if options.snapshot else _READY_TIMEOUT + _READY_PER_NODE * len(spec["nodes"])
            facts = _wait_until_ready(process, timeout, stderr)
            running = RunningLab(process, facts, stderr, options.name)
            yield running
        finally:
            if process and not (running and running.detached):
                _terminate(process)


def _start(lab: Lab, options: LabServeOptions, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "chaos.lab", *options.arguments(lab)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,  # Ctrl-C is for nodefall, which still needs the lab to roll back
        cwd=Path(chaos.__file__).parents[1],  # -m looks for modules there first, and not in the user's directory
        env={**os.environ, MARK: options.mark},
        pass_fds=() if options.lock_fd is None else (options.lock_fd,),
    )


def _log(directory: Path | None) -> IO[bytes]:
    return (directory / LOG).open("w+b") if directory else tempfile.TemporaryFile()


def make_inventory(facts: dict[str, Any], name: str = "lab") -> Inventory:
    """The inventory of the lab with the ready line ``facts``."""
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": name},
        "cluster": {
            "kubeconfig": _kubeconfig(facts),
            "simulated": True,
            "controllerManager": {"urls": [facts["controllerManager"]]},
            "timeSource": facts["timeSource"],
        },
        "defaults": {"transport": "ssh", "sudo": True, "knownHosts": facts["knownHosts"], "agent": False},
        "hosts": {host["node"]: _host(host) for host in facts["hosts"]},
    }
    return Inventory.model_validate(document)


def _kubeconfig(facts: dict[str, Any]) -> str:
    """The kubeconfig of the user with limited permissions if there is one, else of the administrator."""
    return str(facts["users"][0]["kubeconfig"] if facts["users"] else facts["kubeconfig"])


def _host(host: dict[str, Any]) -> dict[str, Any]:
    power = host["power"]
    connection = _winrm(host["winrm"]) if host["os"] == "windows" else _ssh(host)
    crash_tool = {"crashTool": host["crashTool"]} if "crashTool" in host else {}
    return {
        **{key: host[key] for key in ("node", "address", "os")},
        **connection,
        **crash_tool,
        "power": {
            "kind": "redfish",
            "url": power["url"],
            "user": power["user"],
            "password": {"file": power["passwordFile"]},
            "caFile": power["caFile"],
        },
    }


def _ssh(host: dict[str, Any]) -> dict[str, Any]:
    return {key: host[key] for key in ("port", "user", "identityFile")}


def _winrm(service: dict[str, Any]) -> dict[str, Any]:
    return {
        "transport": "winrm",
        "port": urlsplit(service["https"]).port,
        "user": service["user"],
        "options": {"password": {"file": service["passwordFile"]}, "caFile": service["caFile"]},
    }


def _wait_until_ready(process: subprocess.Popen[bytes], timeout: float, stderr: IO[bytes]) -> dict[str, Any]:
    """The ready line of the process, at most ``timeout`` wall seconds later. Raises NodefallError."""
    assert process.stdout is not None  # noqa: S101 - a pipe
    line = _read_line(process.stdout.fileno(), timeout)
    if line.endswith(b"\n"):
        facts: dict[str, Any] = json.loads(line)
        return facts
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)  # its stdout is closed: it is about to end
    code = process.returncode
    text = _read_stderr(stderr) or "no output"
    if code == _UNAVAILABLE:
        raise Refused(f"the lab cannot listen: {text}", hint="choose another --port, or omit it to use a free one")
    if code == Exit.USAGE:
        raise UsageError(f"invalid lab: {text.removeprefix('LabSpec: ')}")
    reason = f"did not become ready within {timeout:g} s" if code is None else "did not start"
    raise NodefallError(f"the lab {reason}: {text}")


def _write_stdin(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Write one line. Raises BrokenPipeError if the process has ended."""
    assert process.stdin is not None  # noqa: S101 - a pipe
    process.stdin.write(line)
    process.stdin.flush()


def _read_stderr(stderr: IO[bytes]) -> str:
    text = os.pread(stderr.fileno(), 1 << 16, 0)  # the process shares the position of the file
    return text.decode(errors="replace").strip()


def _read_line(fd: int, timeout: float) -> bytes:
    """The first line; what was received of it, if the stream ends or ``timeout`` seconds pass before its end."""
    data = b""
    with closing(SystemClock()) as clock, selectors.DefaultSelector() as selector:
        end = clock.now() + timeout
        selector.register(fd, selectors.EVENT_READ)
        while not data.endswith(b"\n") and selector.select(max(end - clock.now(), 0)):
            chunk = os.read(fd, 65536)
            if not chunk:
                break
            data += chunk
    return data


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to stop, then terminate it, then kill it."""
    if process.poll() is None and process.stdin and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            _write_stdin(process, b"stop\n")
    for escalate in (process.terminate, process.kill):
        try:
            process.wait(_STOP_TIMEOUT)
            break
        except subprocess.TimeoutExpired:
            escalate()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
