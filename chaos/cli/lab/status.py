"""The state of labs, as JSON and as text; and their end."""

from __future__ import annotations

import http.client
import shlex
import ssl
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from chaos.app.labs import LOG
from chaos.cli.lab_state import DEFAULT_NAME, LabDirectory, LabState, find, lab_names, remove_copy, terminate
from chaos.core.clock import SystemClock
from chaos.core.duration import format_duration, timestamp
from chaos.core.errors import Exit, NodefallError, Refused, UsageError
from chaos.core.files import bundled_path
from chaos.core.text import count_of, printable

_TIMEOUT = 3.0  # wall seconds
_LOG_END = 2000  # bytes
RUNNING = "running"
_STATE_KEYS = (
    "pid",
    "since",
    "workers",
    "kubernetes",
    "seed",
    "lockstep",
    "speed",
    "breakages",
    "apiServer",
    "kubeconfig",
)
_PLACES = (("API server", "apiServer"), ("kubeconfig", "kubeconfig"), ("inventory", "inventory"))
_REMEDIES = {
    "dead": "remove its files in {directory} with nodefall lab down {name}",
    "silent": "stop it with nodefall lab down {name}; its log is in {directory}",
    "starting": "stop it with nodefall lab down {name}",
    "foreign": "move {directory} away",
}
_TRIES, _PAUSE = 100, 0.05  # wall seconds


def inspect_all() -> list[dict[str, Any]]:
    """The state of every lab of this user."""
    return [inspect(name) for name in lab_names()]


def inspect(name: str) -> dict[str, Any]:
    """The state of the lab ``name`` as JSON. ``state``: running, starting, silent, dead or foreign."""
    directory = LabDirectory(name)
    try:
        alive = directory.is_alive()
    except Refused as error:
        return to_dict(directory, None, "foreign", error.message)
    state = directory.state()
    if not alive:
        return to_dict(directory, state, "dead", _last_log_line(directory.path / LOG))
    if state is None or not state.ready:
        return to_dict(directory, state, "starting")
    silence = _unreachable_reason(state)
    return to_dict(directory, state, "silent" if silence else RUNNING, silence)


def to_dict(
    directory: LabDirectory, state: LabState | None, condition: str = RUNNING, reason: str = ""
) -> dict[str, Any]:
    """A lab as JSON; unknown values are null."""
    known = dict.fromkeys(_STATE_KEYS)
    if state:
        since = timestamp(state.since)
        fields = {**msgspec.to_builtins(state), "since": since}
        known = {key: None if fields[key] == "" else fields[key] for key in _STATE_KEYS}
    locations = {"inventory": str(directory.inventory), "directory": str(directory.path)}
    return {"name": directory.name, "state": condition, "why": reason or None, **known, **locations}


def exit_code(labs: list[dict[str, Any]]) -> Exit:
    """HELD if every lab is running."""
    return Exit.HELD if all(lab["state"] == RUNNING for lab in labs) else Exit.INCONCLUSIVE


def table(labs: list[dict[str, Any]]) -> str:
    """All labs as text."""
    if not labs:
        return "no labs; start one with nodefall lab up"
    return "\n".join(line for lab in labs for line in _lines(lab))


def _lines(lab: dict[str, Any]) -> list[str]:
    head = f"{lab['name']}: {lab['state']}"
    if lab["pid"] is not None:
        head += f", {summary(lab)}, process {lab['pid']}, since {lab['since']}{_ago(lab['since'])}"
    lines = [head]
    if lab["state"] == RUNNING:
        lines += [f"  {word:<11} {lab[key]}" for word, key in _PLACES]
    else:
        lines += [f"  {printable(lab['why'])}"] if lab["why"] else []
        lines += [f"  {_REMEDIES[lab['state']].format(**lab)}"]
    return lines


def summary(lab: dict[str, Any]) -> str:
    """Size, version, time mode and defects of a lab."""
    speed = f"{lab['speed']:g}"
    time = f"up to {speed}x, only while a client waits" if lab["lockstep"] else f"{speed}x all the time"
    broken = f", deliberately broken: {', '.join(lab['breakages'])}" if lab["breakages"] else ""
    return f"{count_of(lab['workers'], 'worker')}, Kubernetes {lab['kubernetes']}, {time}{broken}"


_LOCKSTEP = "Simulated time advances only while a client waits for it. To use kubectl, start the lab with --speed 1."


def next_steps(lab: dict[str, Any]) -> str:
    """The final output of ``nodefall lab up``."""
    experiment = bundled_path("experiments/graceful-poweroff.yaml")
    if experiment.is_relative_to(Path.cwd()):
        experiment = experiment.relative_to(Path.cwd())
    quoted = {key: shlex.quote(str(lab[key])) for key in ("kubeconfig", "inventory", "name")}
    lines = [f"the lab is up: {summary(lab)}", *(f"  {word:<11} {lab[key]}" for word, key in _PLACES), "try:"]
    lines += [
        f"  nodefall run {shlex.quote(str(experiment))} --inventory {quoted['inventory']}",
        f"  kubectl --kubeconfig {quoted['kubeconfig']} get nodes",
        f"  nodefall lab down {quoted['name']}",
    ]
    if lab["lockstep"]:
        lines.append(_LOCKSTEP)
    return "\n".join(lines)


def _ago(since: str) -> str:
    with closing(SystemClock()) as clock:
        seconds = round(clock.now() - datetime.fromisoformat(since).timestamp())
    return f" ({format_duration(seconds)} ago)" if seconds >= 0 else ""


def _unreachable_reason(state: LabState) -> str:
    """Why the API server of a lab does not respond, "" if it does."""
    parts = urlsplit(state.api_server)
    try:
        context = ssl.create_default_context(cafile=state.ca_file)
        server = http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=_TIMEOUT, context=context)
        with closing(server):
            server.request("GET", "/readyz")
            response = server.getresponse()
            return "" if response.status == 200 else f"{state.api_server}/readyz returned status {response.status}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{state.api_server} does not respond: {error}"


def _last_log_line(log: Path) -> str:
    """The last line of a lab's log."""
    try:
        lines = log.read_bytes()[-_LOG_END:].decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "killed")


def select_labs(name: str | None, everything: bool) -> list[str]:
    """The names of the selected labs. Raises UsageError."""
    existing = lab_names()
    if everything:
        if name:
            raise UsageError("give a name or --all, not both")
        return existing
    if name is None and not existing:
        return []
    selected = name or DEFAULT_NAME
    if selected not in existing:
        hint = f"known labs: {', '.join(existing)}" if existing else "start one with nodefall lab up"
        raise UsageError(f"unknown lab {selected!r}", hint=hint)
    return [selected]


def down_all(names: Iterable[str], echo: Callable[[str], None]) -> None:
    """Stop all labs, even if one fails; then raise the last error."""
    failed: NodefallError | None = None
    for name in names:
        try:
            echo(_down(name))
        except NodefallError as error:
            if failed:
                echo(f"error: {failed.message}")
            failed = error
    if failed:
        raise failed


def _down(name: str) -> str:
    """Stop one lab; a message. Raises Refused if its process cannot be identified."""
    directory = LabDirectory(name)
    if not directory.is_alive():
        directory.remove()
        return f"the lab {name!r} was dead; its files were removed"
    state, copy = directory.state(), directory.inventory_copy()
    if state is None:
        raise Refused(
            f"unknown process of the lab {name!r}: cannot read {directory.path}/lab.json",
            hint=f"unless it is just starting, find its process with fuser {directory.path}/lock",
        )
    with find(state) as process:
        if process is None:
            raise Refused(
                f"the process {state.pid} of the lab {name!r} is not visible here, or its ID was reused",
                hint="stop the lab where it was started, perhaps in a container that shares this directory",
            )
        if not terminate(process):
            raise NodefallError(f"cannot stop the lab {name!r}: process {state.pid} is still alive after SIGKILL")
    remove_copy(copy)
    with closing(SystemClock()) as clock:
        for _ in range(_TRIES):  # the lab up that started it may be removing it, too
            if directory.remove():
                return f"the lab {name!r} is down"
            clock.sleep(_PAUSE)
    raise Refused(f"{directory.path} is in use again", hint="run nodefall lab status")
