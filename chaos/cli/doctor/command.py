"""``nodefall doctor``."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import click

EPILOG = """\b
Examples:
  nodefall doctor --inventory hosts/staging.yaml
  nodefall doctor --inventory hosts/staging.yaml my.yaml
  nodefall doctor --inventory hosts/lab.yaml --json
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, type=click.Path(path_type=Path))
@click.option("--inventory", "-i", help="Which cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--all", "everything", is_flag=True, help="Tell also what is in order, host by host.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout; docs/doctor.md describes it.")
def command(experiments: tuple[Path, ...], inventory: str | None, everything: bool, as_json: bool) -> None:
    """Tell what EXPERIMENTS (default: those that are shipped) need, and this cluster and its hosts do not have.

    Touches nothing. Exit code 0: nothing refuses any of them; 2: some are refused somewhere; 4: all are, everywhere.
    """
    import msgspec

    from chaos.app.connect import connect_cluster, inventory_path, refuse_before_side_effects
    from chaos.app.doctor import DoctorRequest, check_names, diagnose
    from chaos.app.load import load
    from chaos.app.registry import load_registry
    from chaos.cli.bundled import bundled_path
    from chaos.cli.doctor.doctor_text import render
    from chaos.load.inventory import load_inventory

    known = load_registry()
    paths = experiments or tuple(sorted(bundled_path("experiments").glob("*.yaml")))
    loaded = [load(path, known) for path in paths]
    check_names(loaded)
    cluster = load_inventory(inventory_path(inventory))
    with refuse_before_side_effects(), connect_cluster(cluster) as opened, opened.clock.participant():
        progress = _Counter()
        report = diagnose(loaded, DoctorRequest(opened, known, bundled=not experiments, on_host_inspected=progress))
        progress.end()
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    else:
        click.echo("\n".join(render(report, everything=everything)))
    sys.exit(report.exit_code)


class _Counter:
    """Progress on a terminal: how many hosts have been looked at."""

    def __init__(self) -> None:
        self._done = count(1)
        self._has_output = False

    def __call__(self, _: str) -> None:
        if sys.stderr.isatty():
            self._has_output = True
            click.echo(f"\r\033[Khosts looked at: {next(self._done)}", err=True, nl=False)

    def end(self) -> None:
        """Leave a line of its own to what comes."""
        if self._has_output:
            click.echo("\r\033[K", err=True, nl=False)
