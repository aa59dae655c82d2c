"""``nodefall doctor``."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import click

from chaos.cli.complete import complete_experiment_file
from chaos.cli.inventory_option import inventory_option

EPILOG = """\b
Examples:
  nodefall doctor --inventory hosts/staging.yaml
  nodefall doctor --inventory hosts/staging.yaml my.yaml
  nodefall doctor --inventory hosts/lab.yaml --json
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, shell_complete=complete_experiment_file, type=click.Path(path_type=Path))
@inventory_option("The cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--all", "everything", is_flag=True, help="Print also passed checks, host by host.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout; docs/doctor.md describes it.")
def command(
    experiments: tuple[Path, ...], inventory: str | None, reports: Path, everything: bool, as_json: bool
) -> None:
    """Check what EXPERIMENTS (default: the bundled ones) need of a cluster and its hosts. No side effects.

    Exit code 0: no experiment is refused; 2: some are refused on some nodes; 4: all are refused on all nodes.
    """
    import msgspec

    from chaos.app.connect import connect_cluster, inventory_path, refuse_before_side_effects
    from chaos.app.doctor import DoctorRequest, check_names, diagnose, load_bundled
    from chaos.app.load import load
    from chaos.app.registry import load_registry
    from chaos.cli.bundled import bundled_path
    from chaos.cli.doctor.doctor_text import render
    from chaos.load.inventory import load_inventory

    registry = load_registry()
    unloadable: dict[str, str] = {}
    if experiments:
        loaded = [load(path, registry) for path in experiments]
    else:
        loaded, unloadable = load_bundled(sorted(bundled_path("experiments").glob("*.yaml")), registry)
    check_names(loaded)
    cluster = load_inventory(inventory_path(inventory))
    with refuse_before_side_effects(), connect_cluster(cluster) as connection, connection.clock.participant():
        progress = _Counter()
        request = DoctorRequest(
            connection, registry, reports, bundled=not experiments, on_host_inspected=progress, unloadable=unloadable
        )
        report = diagnose(loaded, request)
        progress.end()
    if as_json:
        findings = [finding.to_dict() for finding in report.findings]
        click.echo(msgspec.json.encode({**msgspec.to_builtins(report), "findings": findings}).decode())
    else:
        click.echo("\n".join(render(report, everything=everything)))
    sys.exit(report.exit_code)


class _Counter:
    """Progress on a terminal: the number of inspected hosts."""

    def __init__(self) -> None:
        self._done = count(1)
        self._has_output = False

    def __call__(self, _: str) -> None:
        if sys.stderr.isatty():
            self._has_output = True
            click.echo(f"\r\033[Khosts inspected: {next(self._done)}", err=True, nl=False)

    def end(self) -> None:
        """Clear the line."""
        if self._has_output:
            click.echo("\r\033[K", err=True, nl=False)
