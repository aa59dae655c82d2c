"""``nodefall lab up``: a lab with a name, a workload perhaps, and a home; it runs on when the command has ended."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import click

from chaos.app.labs import LabServeOptions, RunningLab, start_lab
from chaos.cli.lab.lab_state import LabDirectory, LabState, lab_names, remove_copy
from chaos.cli.lab.process import start_ticks
from chaos.cli.lab.status import next_steps, to_dict
from chaos.cli.lab.workload import READY_TIMEOUT, apply, wait_for_nodes, wait_for_workload
from chaos.cli.output import write
from chaos.clock import RemoteClock, SystemClock
from chaos.kube.client import connect
from chaos.load.manifests import LocatedObject, load_objects
from chaos.model.duration import format_duration
from chaos.model.errors import BadInput, NodefallError, Refused, UsageError
from chaos.model.inventory import Inventory, Lab

_POLL_INTERVAL, _EXIT_GRACE = 0.5, 1.0  # wall seconds


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The command line's wishes; ``lab`` is the inventory's with the options in force."""

    inventory: Inventory
    lab: Lab
    name: str
    speed: float | None = None
    port: int = 0
    workloads: tuple[Path, ...] = ()
    out: Path | None = None
    foreground: bool = False


def up(wish: UpOptions, tell: Callable[[str], None], as_json: bool) -> None:
    """Start it, tell how to use it, and leave it or, in the foreground, wait for its end. Raises NodefallError.

    What does not come up whole is taken down again.
    """
    objects = load_objects(wish.workloads)
    if wish.out:
        _refuse_foreign(wish.out)
    home = LabDirectory(wish.name)
    with ExitStack() as stack:
        with home.create() as lock:
            stack.callback(home.remove)
            _refuse_port(wish)
            tell(f"starting the lab {wish.name!r}")
            state, lab = _start(wish, home, lock, stack)
        inventory = _inventory(wish, lab)
        home.write(state, inventory)
        if wish.out:
            stack.callback(remove_copy, (wish.out, inventory))
            write(wish.out, inventory)
        _populate(lab, objects, tell)
        state.ready = True
        home.write(state)
        told = to_dict(home, state)
        _print(json.dumps(told) if as_json else next_steps(told))
        if wish.foreground:
            _wait(lab, tell)
        else:
            lab.detach()
            stack.pop_all()


def _print(text: str) -> None:
    """Now, as the command may stay; a lab that nobody was told of is of no use. Raises NodefallError."""
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NodefallError(f"the output could not be written: {error.strerror}; the lab is down again") from error


def _start(wish: UpOptions, home: LabDirectory, lock: int, stack: ExitStack) -> tuple[LabState, RunningLab]:
    """The process, known from its first moment on; it ends with ``stack``."""
    with closing(SystemClock()) as clock:
        state = LabState(
            name=wish.name,
            pid=0,
            start_ticks=0,
            mark=secrets.token_hex(16),
            since=clock.now(),
            workers=wish.lab.workers,
            kubernetes=wish.lab.kubernetes,
            seed=wish.lab.seed,
            lockstep=wish.speed is None,
            speed=wish.lab.speed if wish.speed is None else wish.speed,
            breakages=wish.lab.breakages,
            out=str(wish.out.absolute()) if wish.out else "",
        )

    def started(pid: int) -> None:
        state.pid, state.start_ticks = pid, start_ticks(pid)
        home.write(state)

    serving = LabServeOptions(wish.name, wish.speed, wish.port, home.path, lock, state.mark, started)
    try:
        lab = stack.enter_context(start_lab(wish.lab, serving=serving))
    except OSError as error:
        raise Refused(f"the lab's process cannot be started: {error}", hint="see the limits of this machine") from error
    facts = lab.facts
    state.api_server, state.kubeconfig, state.ca_file = facts["apiServer"], facts["kubeconfig"], facts["caFile"]
    return state, lab


def _refuse_port(wish: UpOptions) -> None:
    """Raises Refused if another lab has the port; that it is free otherwise, the lab finds out itself."""
    for name in lab_names() if wish.port else ():
        other = LabDirectory(name)
        state = other.state()
        if state and state.api_server.endswith(f":{wish.port}") and other.is_alive():
            hint = f"choose another with --port, or stop that lab: nodefall lab down {name}"
            raise Refused(f"port {wish.port} is in use by the lab {name!r}", hint=hint)


def _inventory(wish: UpOptions, lab: RunningLab) -> str:
    made = lab.inventory.model_copy(update={"protected": wish.inventory.protected, "limits": wish.inventory.limits})
    return made.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n"


def _populate(lab: RunningLab, objects: Sequence[LocatedObject], tell: Callable[[str], None]) -> None:
    """Wait for the nodes, apply the workload and wait for it."""
    source = lab.facts["timeSource"]
    try:
        with closing(connect(lab.facts["kubeconfig"])) as kube, closing(RemoteClock(**source)) as clock:
            wait_for_nodes(kube, clock)
            tell("the nodes are Ready")
            if objects:
                begun = clock.now()
                applied = apply(kube, objects)
                patience = format_duration(READY_TIMEOUT)
                tell(f"{len(applied)} objects applied; waiting at most {patience} of the cluster's time for them")
                wait_for_workload(kube, clock, applied)
                tell(f"available after {format_duration(round(clock.now() - begun))} of the cluster's time")
    except NodefallError as error:
        if isinstance(error, BadInput) or not lab.wait(_EXIT_GRACE):
            raise
        raise NodefallError(f"the lab ended while it was made ready: {lab.output or 'it was stopped'}") from error


def _wait(lab: RunningLab, tell: Callable[[str], None]) -> None:
    """Until Ctrl-C, SIGTERM or ``nodefall lab down``. Raises NodefallError if the lab fails."""
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    tell("Ctrl-C ends it")
    while not stop.wait(_POLL_INTERVAL):
        if lab.returncode is not None:
            if lab.returncode:
                raise NodefallError(f"the lab has ended by itself: {lab.output or 'it was killed'}")
            tell("it was stopped")
            return


def _refuse_foreign(out: Path) -> None:
    """Raises UsageError if ``out`` is a file that no lab has written."""
    try:
        text = out.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        text = ""
    if '"simulated": true' not in text:
        raise UsageError(f"{out} exists and is no inventory of a lab", hint="name another file with --out")
