"""Starts a named lab that outlives the command."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import click
from pydantic import ValidationError

from chaos.app.labs import LabServeOptions, RunningLab, start_lab
from chaos.cli.lab.status import next_steps, to_dict
from chaos.cli.lab.workload import READY_TIMEOUT, apply, wait_for_nodes, wait_for_workload
from chaos.cli.lab_state import LabDirectory, LabState, lab_names, remove_copy, start_ticks
from chaos.cli.output import as_output, is_closed_pipe, write
from chaos.cluster.client import connect
from chaos.core.clock import RemoteClock, SystemClock
from chaos.core.duration import format_duration
from chaos.core.errors import BadInput, NodefallError, Refused, UsageError
from chaos.core.inventory import Inventory
from chaos.core.lab_settings import Lab
from chaos.core.text import escape_control
from chaos.documents.manifests import LocatedObject, load_objects
from chaos.documents.wording import did_you_mean

_FIELDS = {"nodes": "workers", "kubernetes": "kubernetes", "systemd": "systemd", "seed": "seed"}
_DEFECTS = {"inhibitor-lost-after-cancel": "inhibitorLostAfterCancel"}
_POLL_INTERVAL, _EXIT_GRACE = 0.5, 1.0  # wall seconds


def build_lab(source: str, lab: Lab | None, options: Mapping[str, Any]) -> Lab:
    """``lab`` with ``options`` applied; None stands for an option that was not given. Raises UsageError."""
    if lab is None:
        raise UsageError(f"{source} describes a cluster, not a lab", hint="see hosts/lab.yaml")
    changes: dict[str, Any] = {f: options[o] for o, f in _FIELDS.items() if options.get(o) is not None}
    if options.get("zones") is not None:
        changes["zones"] = _zones(options["zones"])
    changes |= _defects(options.get("defects") or ())
    changes["breakages"] = [*lab.breakages, *(options.get("broken") or ())]
    try:
        return Lab.model_validate(lab.model_dump(by_alias=True) | changes)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise UsageError(f"{_option(field)}: {first['msg'].removeprefix('Value error, ')}") from error


def refuse_with_snapshot(options: Mapping[str, Any]) -> None:
    """Raises UsageError for options of what a snapshot says."""
    given = [f"--{name}" for name in ("nodes", "zones", "kubernetes", "systemd") if options.get(name) is not None]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be combined with --snapshot", hint="it has them of the cluster")


def _zones(text: str) -> list[str]:
    zones = [zone.strip() for zone in text.split(",")]
    if not all(zones) or len(set(zones)) < len(zones):
        raise UsageError(f"--zones: {text!r} is not a list of different names", hint="write --zones a,b,c")
    return zones


def _defects(texts: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, when = text.partition("=")
        if name not in _DEFECTS or not sign:
            known = did_you_mean(name, _DEFECTS)
            raise UsageError(
                f"--kubelet-defects: unknown defect {text!r}", hint=f"{known}, with =always, =never or =seeded"
            )
        found[_DEFECTS[name]] = when
    return found


def _option(field: str) -> str:
    if field in _DEFECTS.values():
        return "--kubelet-defects"
    return next((f"--{option}" for option, name in _FIELDS.items() if name == field), field)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of the command; ``lab`` is that of the inventory with the options applied."""

    inventory: Inventory
    lab: Lab
    name: str
    speed: float | None = None
    port: int = 0
    workloads: tuple[Path, ...] = ()
    out: Path | None = None
    foreground: bool = False
    snapshot: Path | None = None


def up(options: UpOptions, echo: Callable[[str], None], as_json: bool) -> None:
    """Start a lab and print how to use it; in the foreground, wait for its end. Raises NodefallError.

    A lab that does not become ready is removed again.
    """
    objects = load_objects(options.workloads)
    if options.out:
        _refuse_foreign(options.out)
    directory = LabDirectory(options.name)
    with ExitStack() as stack:
        with directory.create() as lock:
            stack.callback(directory.remove)
            _refuse_port(options)
            echo(f"starting the lab {options.name!r}")
            state, lab = _start(options, directory, lock, stack)
        inventory = _inventory(options, lab)
        directory.write(state, inventory)
        if options.out:
            stack.callback(remove_copy, (options.out, inventory))
            write(options.out, inventory)
        for line in (lab.facts.get("snapshot") or {}).get("notModelled", ()):
            echo(escape_control(f"not modelled: {line}"))
        _populate(lab, objects, echo)
        state.ready = True
        directory.write(state)
        document = to_dict(directory, state)
        _print(as_output(json.dumps(document, indent=2)) if as_json else next_steps(document))
        if options.foreground:
            _wait(lab, echo)
        else:
            lab.detach()
            stack.pop_all()


def _print(text: str) -> None:
    """Print how to use the lab. Raises NodefallError: a lab that the user does not know of is removed."""
    try:
        click.echo(text)
    except OSError as error:
        raise NodefallError(f"cannot write the output: {error.strerror}; the lab was removed") from error
    if is_closed_pipe(1):
        raise NodefallError("cannot write the output: closed pipe; the lab was removed")


def _start(options: UpOptions, directory: LabDirectory, lock: int, stack: ExitStack) -> tuple[LabState, RunningLab]:
    """Start the process, which ``stack`` stops. Its ID is written to disk immediately."""
    with closing(SystemClock()) as clock:
        state = LabState(
            name=options.name,
            pid=0,
            start_ticks=0,
            mark=secrets.token_hex(16),
            since=clock.now(),
            workers=options.lab.workers,
            kubernetes=options.lab.kubernetes,
            seed=options.lab.seed,
            lockstep=options.speed is None,
            speed=options.lab.speed if options.speed is None else options.speed,
            breakages=options.lab.breakages,
            out=str(options.out.absolute()) if options.out else "",
        )

    def started(pid: int) -> None:
        state.pid, state.start_ticks = pid, start_ticks(pid)
        directory.write(state)

    serve_options = LabServeOptions(
        options.name, options.speed, options.port, directory.path, lock, state.mark, options.snapshot, started
    )
    try:
        lab = stack.enter_context(start_lab(options.lab, options=serve_options))
    except OSError as error:
        raise Refused(
            f"cannot start the process of the lab: {error}", hint="check the limits of this machine (ulimit -a)"
        ) from error
    facts = lab.facts
    state.api_server, state.kubeconfig, state.ca_file = facts["apiServer"], facts["kubeconfig"], facts["caFile"]
    if copied := facts.get("snapshot"):
        state.workers, state.kubernetes = copied["workers"], copied["kubernetes"]
    return state, lab


def _refuse_port(options: UpOptions) -> None:
    """Raises Refused if another lab has the port. The lab itself fails on a port that another program has."""
    for name in lab_names() if options.port else ():
        other = LabDirectory(name)
        state = other.state()
        if state and state.api_server.endswith(f":{options.port}") and other.is_alive():
            hint = f"choose another --port, or stop that lab: nodefall lab down {name}"
            raise Refused(f"port {options.port} is in use by the lab {name!r}", hint=hint)


def _inventory(options: UpOptions, lab: RunningLab) -> str:
    """The inventory of the lab as JSON, with the limits of the inventory that described it."""
    settings = {"protected": options.inventory.protected, "limits": options.inventory.limits}
    inventory = lab.inventory.model_copy(update=settings)
    return inventory.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n"


def _populate(lab: RunningLab, objects: Sequence[LocatedObject], echo: Callable[[str], None]) -> None:
    """Wait for the nodes, apply the workload and wait for it."""
    source = lab.facts["timeSource"]
    try:
        with closing(connect(lab.facts["kubeconfig"])) as kube, closing(RemoteClock(**source)) as clock:
            if "snapshot" not in lab.facts:  # whose nodes may be down
                wait_for_nodes(kube, clock)
                echo("the nodes are Ready")
            if objects:
                start = clock.now()
                applied = apply(kube, objects)
                timeout = format_duration(READY_TIMEOUT)
                echo(f"{len(applied)} objects applied; waiting at most {timeout} of cluster time for them")
                wait_for_workload(kube, clock, applied)
                echo(f"available after {format_duration(round(clock.now() - start))} of cluster time")
    except NodefallError as error:
        if isinstance(error, BadInput) or not lab.wait(_EXIT_GRACE):
            raise
        raise NodefallError(f"the lab ended before it was ready: {lab.output or 'stopped'}") from error


def _wait(lab: RunningLab, echo: Callable[[str], None]) -> None:
    """Wait for Ctrl-C, SIGTERM or ``nodefall lab down``. Raises NodefallError if the lab fails."""
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    echo("press Ctrl-C to stop the lab")
    while not stop.wait(_POLL_INTERVAL):
        if lab.returncode is not None:
            if lab.returncode:
                raise NodefallError(f"the lab has ended: {lab.output or 'killed'}")
            echo("the lab was stopped")
            return


def _refuse_foreign(out: Path) -> None:
    """Raises UsageError if ``out`` exists and is not the inventory of a lab."""
    try:
        text = out.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        text = ""
    if '"simulated": true' not in text:
        raise UsageError(f"{out} exists and is not the inventory of a lab", hint="give another file with --out")
