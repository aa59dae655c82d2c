"""``nodefall lab``: a simulated cluster to try things on."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event

import click

from chaos.cli.lab_breakages import breakages

EPILOG = """\b
Examples:
  nodefall lab up hosts/lab.yaml --out lab-inventory.json
  nodefall run experiments/graceful-poweroff.yaml --inventory lab-inventory.json
"""


@click.group(epilog=EPILOG)
def command() -> None:
    """A simulated cluster on loopback: API server, SSH, kubelets, power."""


command.add_command(breakages)


@command.command("up", epilog=EPILOG)
@click.argument("inventory", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("lab-inventory.json"),
    show_default=True,
    help="Where to write the inventory that reaches it.",
)
@click.option("--breakage", "broken", multiple=True, metavar="ID", help="What it is to do wrong; repeatable.")
def up(inventory: Path | None, out: Path, broken: tuple[str, ...]) -> None:
    """Start the lab that INVENTORY describes (default: the shipped hosts/lab.yaml) and keep it until Ctrl-C."""
    from chaos.cli.labs import start_lab
    from chaos.cli.output import write
    from chaos.cli.shipped import shipped
    from chaos.load.inventory import load_inventory
    from chaos.model.errors import NodefallError, UsageError

    source = inventory or shipped("hosts/lab.yaml")
    asked = load_inventory(source)
    if asked.lab is None:
        raise UsageError(f"{source} describes a cluster, not a lab")
    _keep_foreign(out)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    wanted = asked.lab.model_copy(update={"breakages": [*asked.lab.breakages, *broken]})
    with start_lab(wanted) as lab:
        made = lab.inventory.model_copy(update={"protected": asked.protected, "limits": asked.limits})
        text = made.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n"
        write(out, text)
        try:
            click.echo(f"the lab is up; use --inventory {out}; Ctrl-C ends it")
            sys.stdout.flush()
            while not stop.wait(1.0):
                if lab.ended:
                    raise NodefallError("the lab has ended by itself")
        finally:
            with suppress(OSError, UnicodeDecodeError):  # whatever is there now is not ours
                if out.read_text(encoding="utf-8") == text:
                    out.unlink()


def _keep_foreign(out: Path) -> None:
    """Raises UsageError if ``out`` is a file that no lab has written."""
    from chaos.model.errors import UsageError

    try:
        text = out.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        text = ""
    if '"simulated": true' not in text:
        raise UsageError(f"{out} exists and is no inventory of a lab", hint="name another file with --out")


REPLAY_EPILOG = """\b
Examples:
  nodefall lab replay recording.jsonl.gz
  nodefall lab replay recording.jsonl.gz --count
"""


@command.command("replay", epilog=REPLAY_EPILOG)
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("--count", "only_count", is_flag=True, help="Only count the recorded states; no lab is involved.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
def replay(recording: Path, only_count: bool, as_json: bool) -> None:
    """Do in the lab what a RECORDING (a file or a run directory) of a cluster shows, and compare state by state.

    Exit code: 0 every recorded state matched, 1 some did not, 2 the lab cannot do what was done.
    """
    from chaos.cli.replaying import replay_command

    sys.exit(replay_command(recording, only_count, as_json))
