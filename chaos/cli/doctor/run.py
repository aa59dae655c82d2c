"""Runs the doctor for a command, and prints its report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.app.connect import connect_cluster, refuse_before_side_effects
from chaos.app.doctor import DoctorRequest, Report, check_names, diagnose, load_bundled
from chaos.app.load import load
from chaos.app.registry import load_registry
from chaos.cli.bundled import bundled_path
from chaos.cli.doctor.doctor_text import render
from chaos.core.inventory import Inventory


def run_doctor(read_inventory: Callable[[], Inventory], experiments: tuple[Path, ...], reports: Path) -> Report:
    """The report about ``experiments``, by default the bundled ones. Raises NodefallError."""
    registry = load_registry()
    unloadable: dict[str, str] = {}
    if experiments:
        loaded = [load(path, registry) for path in experiments]
    else:
        loaded, unloadable = load_bundled(sorted(bundled_path("experiments").glob("*.yaml")), registry)
    check_names(loaded)
    inventory = read_inventory()
    with refuse_before_side_effects(), connect_cluster(inventory) as connection, connection.clock.participant():
        progress = _Counter()
        request = DoctorRequest(
            connection, reports, bundled=not experiments, on_host_inspected=progress, unloadable=unloadable
        )
        report = diagnose(loaded, request)
        progress.end()
    return report


def report_document(report: Report) -> dict[str, Any]:
    """The report as ``--json`` prints it."""
    findings = [finding.to_dict() for finding in report.findings]
    return {**msgspec.to_builtins(report), "findings": findings}


def echo_report(report: Report, *, everything: bool, as_json: bool) -> None:
    """Print the report on stdout."""
    if as_json:
        click.echo(msgspec.json.encode(report_document(report)).decode())
    else:
        click.echo("\n".join(render(report, everything=everything)))


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
