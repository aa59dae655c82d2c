"""A lab for one command: started as a process of its own, told as an ordinary inventory, stopped afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO, Any

from chaos.engine.clock import SystemClock
from chaos.model.errors import NodefallError
from chaos.model.inventory import Inventory, Lab

_READY_TIMEOUT = 30.0  # wall seconds
_STOP_TIMEOUT = 10.0
CONTROL_PLANE = "control-plane"


class RunningLab:
    """``inventory`` reaches it like any cluster; ``facts`` is its ready line."""

    def __init__(self, process: subprocess.Popen[bytes], facts: dict[str, Any], errors: IO[bytes]) -> None:
        self._process, self._errors = process, errors
        self.facts, self.inventory = facts, make_inventory(facts)

    @property
    def said(self) -> str:
        """What it wrote on stderr; worth showing if it ended by itself."""
        return _text(self._errors)

    @property
    def ended(self) -> bool:
        """True once the process is gone."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """End the lab; twice is harmless."""
        _end(self._process)


@contextmanager
def start_lab(lab: Lab, seed: int | None = None) -> Iterator[RunningLab]:
    """Start ``lab`` and wait until it answers. Raises NodefallError with what it said if it does not."""
    command = [sys.executable, "-m", "chaos.lab", "--pace", f"{lab.speed:g}"]
    with closing(SystemClock()) as clock, tempfile.TemporaryFile() as errors:
        # A session of its own: Ctrl-C is for nodefall, which still needs the lab to roll back.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        try:
            facts = _ready(process, _spec(lab, seed, clock.now()), errors)
            yield RunningLab(process, facts, errors)
        finally:
            _end(process)


def make_inventory(facts: dict[str, Any]) -> Inventory:
    """The inventory of a lab with this ready line."""
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "lab"},
        "cluster": {"kubeconfig": facts["kubeconfig"], "simulated": True, "timeSource": facts["timeSource"]},
        "defaults": {"transport": "ssh", "sudo": True, "knownHosts": facts["knownHosts"], "agent": False},
        "hosts": {host["node"]: _host(host) for host in facts["hosts"]},
    }
    return Inventory.model_validate(document)


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
        "systemd": lab.systemd,
    }
    nodes: list[dict[str, Any]] = [{**common, "name": CONTROL_PLANE, "role": "control-plane"}]
    for index in range(lab.workers):
        zone = lab.zones[index % len(lab.zones)] if lab.zones else ""
        nodes.append({**common, "name": f"worker-{index + 1}", "role": "worker", "zone": zone})
    return {
        "nodes": nodes,
        "kubernetes": lab.kubernetes,
        "inhibitorLostAfterCancel": lab.inhibitor_lost_after_cancel,
        "breakages": lab.breakages,
        "seed": lab.seed if seed is None else seed,
        "start": float(int(now)),  # reports carry the day on which they were made
    }


def _ready(process: subprocess.Popen[bytes], spec: dict[str, Any], errors: IO[bytes]) -> dict[str, Any]:
    """Hand over the spec; the ready line. Raises NodefallError."""
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError):  # it died already: its output says why
        process.stdin.write(json.dumps(spec).encode() + b"\n")
        process.stdin.flush()
    line = _read_line(process.stdout.fileno())
    if line.endswith(b"\n"):
        facts: dict[str, Any] = json.loads(line)
        return facts
    died = process.poll()
    process.kill()
    process.wait()
    why = f"did not answer within {_READY_TIMEOUT:g} s" if died is None else "did not start"
    raise NodefallError(f"the lab {why}: {_text(errors) or 'it said nothing'}")


def _text(errors: IO[bytes]) -> str:
    said = os.pread(errors.fileno(), 1 << 16, 0)  # the file's position belongs to the lab
    return said.decode(errors="replace").strip()


def _read_line(fd: int) -> bytes:
    """The first line, or what came of it before the end or the deadline."""
    data = b""
    with closing(SystemClock()) as clock, selectors.DefaultSelector() as selector:
        end = clock.now() + _READY_TIMEOUT
        selector.register(fd, selectors.EVENT_READ)
        while not data.endswith(b"\n") and selector.select(max(end - clock.now(), 0)):
            chunk = os.read(fd, 65536)
            if not chunk:
                break
            data += chunk
    return data


def _end(process: subprocess.Popen[bytes]) -> None:
    """Say stop, wait, and insist."""
    if process.poll() is None and process.stdin and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"stop\n")
            process.stdin.flush()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
