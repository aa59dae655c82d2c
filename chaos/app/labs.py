"""A lab for one command: started as a process of its own, told as an ordinary inventory, stopped afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import chaos
from chaos.app.interrupts import defer_signals
from chaos.clock import SystemClock
from chaos.model.errors import Exit, NodefallError, Refused, UsageError
from chaos.model.inventory import Inventory, Lab, Rule

_READY_TIMEOUT = 30.0  # wall seconds
_READY_PER_NODE = 0.1
_STOP_TIMEOUT = 10.0
_UNAVAILABLE = 69  # how chaos.lab ends when it cannot have its port
CONTROL_PLANE = "control-plane"
LOG = "lab.log"
MARK = "NODEFALL_LAB"


@dataclass(frozen=True, slots=True)
class LabServeOptions:
    """How a lab is served, beside what the inventory says of it.

    ``speed``: free-running, so many simulated seconds a second; None: in lockstep. ``directory``: by default a
    temporary one. ``lock``: a descriptor that the process keeps open to its end. ``mark``: its environment tells it, as
    MARK. ``started`` is told its ID.
    """

    name: str = "lab"
    speed: float | None = None
    port: int = 0
    directory: Path | None = None
    lock_fd: int | None = None
    mark: str = ""
    on_start: Callable[[int], None] = lambda _: None

    def arguments(self, lab: Lab) -> list[str]:
        """Of the lab's command line."""
        pace = ["--pace", f"{lab.speed:g}"] if self.speed is None else ["--speed", f"{self.speed:g}"]
        directory = [f"--directory={self.directory}"] if self.directory else []
        return [*pace, "--name", f"nodefall-{self.name}", "--port", str(self.port), *directory]


class RunningLab:
    """``inventory`` reaches it like any cluster; ``facts`` is its ready line."""

    def __init__(
        self, process: subprocess.Popen[bytes], facts: dict[str, Any], errors: IO[bytes], name: str = "lab"
    ) -> None:
        self._process, self._errors = process, errors
        self.facts, self.inventory = facts, make_inventory(facts, name)
        self.detached = False

    @property
    def output(self) -> str:
        """What it wrote on stderr; worth showing if it ended by itself."""
        return _read_stderr(self._errors)

    @property
    def returncode(self) -> int | None:
        """The exit code, once the process is gone."""
        return self._process.poll()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then; a process closes its connections before it is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.returncode is not None

    def detach(self) -> None:
        """Let it run on when this process ends. Raises NodefallError if it has ended."""
        try:
            _write_stdin(self._process, b"detach\n")
        except BrokenPipeError as error:
            raise NodefallError(f"the lab has ended by itself: {self.output or 'it said nothing'}") from error
        self.detached = True

    def stop(self) -> None:
        """End the lab; twice is harmless."""
        _terminate(self._process)


@contextmanager
def start_lab(lab: Lab, seed: int | None = None, serving: LabServeOptions | None = None) -> Iterator[RunningLab]:
    """Start ``lab`` and wait until it answers; it is stopped afterwards, unless it was detached.

    Raises NodefallError with what it said if it does not answer.
    """
    serving = serving or LabServeOptions()
    with closing(SystemClock()) as clock, _log(serving.directory) as errors:
        process, running = None, None
        try:
            with defer_signals():  # interrupted within Popen, nobody would know of the process
                process = _start(lab, serving, errors)
            serving.on_start(process.pid)
            facts = _wait_until_ready(process, _spec(lab, seed, clock.now()), errors)
            running = RunningLab(process, facts, errors, serving.name)
            yield running
        finally:
            if process and not (running and running.detached):
                _terminate(process)


def _start(lab: Lab, serving: LabServeOptions, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "chaos.lab", *serving.arguments(lab)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,  # Ctrl-C is for nodefall, which still needs the lab to roll back
        cwd=Path(chaos.__file__).parents[1],  # -m looks for modules there first, and not in the user's directory
        env={**os.environ, MARK: serving.mark},
        pass_fds=() if serving.lock_fd is None else (serving.lock_fd,),
    )


def _log(directory: Path | None) -> IO[bytes]:
    return (directory / LOG).open("w+b") if directory else tempfile.TemporaryFile()


def make_inventory(facts: dict[str, Any], name: str = "lab") -> Inventory:
    """The inventory of a lab with this ready line."""
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
    """Of the user whose rights were given, else of the administrator."""
    return str(facts["users"][0]["kubeconfig"] if facts["users"] else facts["kubeconfig"])


def _host(host: dict[str, Any]) -> dict[str, Any]:
    power = host["power"]
    return {
        **{key: host[key] for key in ("node", "address", "port", "user", "identityFile")},
        "power": {
            "kind": "redfish",
            "url": power["url"],
            "user": power["user"],
            "password": {"file": power["passwordFile"]},
            "caFile": power["caFile"],
        },
    }


def _spec(lab: Lab, seed: int | None, now: float) -> dict[str, Any]:
    """The LabSpec: one control plane and the workers, zones in turn."""
    common: dict[str, Any] = {
        "shutdownGracePeriod": lab.shutdown_grace_period,
        "shutdownGracePeriodCriticalPods": lab.shutdown_grace_period_critical_pods,
        "shutdownGracePeriodByPodPriority": [
            item.model_dump(by_alias=True) for item in lab.shutdown_grace_period_by_pod_priority
        ],
        "systemd": lab.systemd,
    }
    control_plane = {"name": CONTROL_PLANE, "role": "control-plane", "labels": lab.control_plane_labels}
    taints = [taint.model_dump() for taint in lab.register_with_taints]
    workers = {**common, "role": "worker", "taints": taints, "failSwapOn": lab.fail_swap_on}
    workers |= {"swap": lab.swap, "swappedOff": lab.swapped_off}
    nodes: list[dict[str, Any]] = [{**common, **control_plane}]
    for index in range(lab.workers):
        zone = lab.zones[index % len(lab.zones)] if lab.zones else ""
        nodes.append({**workers, "name": f"worker-{index + 1}", "zone": zone})
    return {
        "nodes": nodes,
        "kubernetes": lab.kubernetes,
        "inhibitorLostAfterCancel": lab.inhibitor_lost_after_cancel,
        "controllers": {"disableForceDetachOnTimeout": lab.disable_force_detach_on_timeout},
        "breakages": lab.breakages,
        "users": [] if lab.rights is None else [_user(lab.rights)],
        "seed": lab.seed if seed is None else seed,
        "start": float(int(now)),  # reports carry the day on which they were made
    }


def _user(rights: Sequence[Rule]) -> dict[str, Any]:
    return {"name": "nodefall", "rules": [rule.model_dump(by_alias=True) for rule in rights]}


def _wait_until_ready(process: subprocess.Popen[bytes], spec: dict[str, Any], errors: IO[bytes]) -> dict[str, Any]:
    """Hand over the spec; the ready line. Raises NodefallError."""
    assert process.stdout is not None  # noqa: S101 - a pipe
    with contextlib.suppress(BrokenPipeError):  # it died already: its output says why
        _write_stdin(process, json.dumps(spec).encode() + b"\n")
    patience = _READY_TIMEOUT + _READY_PER_NODE * len(spec["nodes"])
    line = _read_line(process.stdout.fileno(), patience)
    if line.endswith(b"\n"):
        facts: dict[str, Any] = json.loads(line)
        return facts
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)  # having closed its output it is about to end
    code = process.returncode
    said = _read_stderr(errors) or "it said nothing"
    if code == _UNAVAILABLE:
        raise Refused(f"the lab cannot listen: {said}", hint="choose another with --port, or none: a free one is taken")
    if code == Exit.USAGE:
        raise UsageError(f"there can be no such lab: {said.removeprefix('LabSpec: ')}")
    why = f"did not answer within {patience:g} s" if code is None else "did not start"
    raise NodefallError(f"the lab {why}: {said}")


def _write_stdin(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Raises BrokenPipeError if nobody listens."""
    assert process.stdin is not None  # noqa: S101 - a pipe
    process.stdin.write(line)
    process.stdin.flush()


def _read_stderr(errors: IO[bytes]) -> str:
    said = os.pread(errors.fileno(), 1 << 16, 0)  # the file's position belongs to the lab
    return said.decode(errors="replace").strip()


def _read_line(fd: int, patience: float) -> bytes:
    """The first line, or what came of it before the end or the deadline."""
    data = b""
    with closing(SystemClock()) as clock, selectors.DefaultSelector() as selector:
        end = clock.now() + patience
        selector.register(fd, selectors.EVENT_READ)
        while not data.endswith(b"\n") and selector.select(max(end - clock.now(), 0)):
            chunk = os.read(fd, 65536)
            if not chunk:
                break
            data += chunk
    return data


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """Say stop, wait, and insist."""
    if process.poll() is None and process.stdin and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            _write_stdin(process, b"stop\n")
    for insist in (process.terminate, process.kill):
        try:
            process.wait(_STOP_TIMEOUT)
            break
        except subprocess.TimeoutExpired:
            insist()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
