"""Runs the doctor for a command, and prints its report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.app.doctor import DoctorRequest, Report, check_names, diagnose
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.complete import bundled_names
from chaos.core.files import bundled_path
from chaos.core.inventory import Inventory
from chaos.core.text import count_of, printable
from chaos.engine.connection import refuse_before_side_effects
from chaos.engine.load import load
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import CLUSTER, Finding

_MAX_NAMES = 4  # names before "and N more"
_COLUMN = 19


def run_doctor(read_inventory: Callable[[], Inventory], experiments: tuple[Path, ...], reports: Path) -> Report:
    """The report about ``experiments``, by default the bundled ones. Raises NodefallError."""
    paths = experiments or [bundled_path(f"experiments/{name}.yaml") for name in bundled_names()]
    loaded = [load(path) for path in paths]
    check_names(loaded)
    inventory = read_inventory()
    with refuse_before_side_effects(), connect_cluster(inventory) as connection, connection.clock.participant():
        progress = _Counter()
        request = DoctorRequest(connection, reports, bundled=not experiments, on_host_inspected=progress)
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


def render(report: Report, *, everything: bool) -> list[str]:
    """The findings, most severe first, with hints; one line for all hosts with the same finding.

    ``everything``: one line per host. Experiments that do not match the cluster come last.
    """
    simulated = ", simulated" if report.simulated else ""
    lines = [
        f"cluster {report.server} (Kubernetes {report.kubernetes}{simulated}), {count_of(len(report.hosts), 'host')}",
        "",
    ]
    shown = [finding for finding in report.findings if not _is_other_cluster(finding)]
    for group in [[finding] for finding in shown] if everything else _group_similar(shown):
        lines += _render_group(group)
    mismatches = _mismatches(report.findings)
    lines += ["", "do not match this cluster:"] if mismatches else []
    lines += [f"  {', '.join(names)}: {printable(reason)}" for reason, names in mismatches.items()]
    count = len(report.possible)
    return [*lines, "", f"{count} of {count + len(report.impossible)} experiments can be run here"]


def _is_other_cluster(finding: Finding) -> bool:
    """Whether an experiment does not match the cluster, which is not an error of the cluster."""
    return finding.is_incompatible and finding.severity is Severity.NOTE


def _mismatches(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Names of the experiments that do not match the cluster, by the first reason for each."""
    reasons: dict[str, str] = {}
    for finding in filter(_is_other_cluster, findings):
        for name in finding.experiments:
            reasons.setdefault(name, _without_experiment(finding))
    by_reason: dict[str, list[str]] = {}
    for name in sorted(reasons):
        by_reason.setdefault(reasons[name], []).append(name)
    return by_reason


def _without_experiment(finding: Finding) -> str:
    """The message without the name of the experiment in front."""
    return finding.message.removeprefix(f"{finding.experiments[0]}: ") if finding.experiments else finding.message


def _group_similar(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Group findings of one check that differ only in the host and in the experiments."""

    def group_key(finding: Finding) -> tuple[str, str, str]:
        message, name = _without_experiment(finding), _host(finding)
        return str(finding.severity), finding.check, message.replace(name, "") if name else message

    order = {severity: rank for rank, severity in enumerate(reversed(Severity))}
    ordered = sorted(findings, key=lambda finding: (order[finding.severity], group_key(finding)))
    return (list(group) for _, group in groupby(ordered, key=group_key))


def _render_group(group: Sequence[Finding]) -> Iterator[str]:
    first, hosts = group[0], list(dict.fromkeys(name for finding in group if (name := _host(finding))))
    name, names = _host(first), _truncate(hosts)
    experiments = list(dict.fromkeys(each for finding in group for each in finding.experiments))
    message = _without_experiment(first)
    message = message.replace(name, names) if name and name in message else message
    if name and name not in first.message:
        message = f"{names}: {message}"
    label = f"{first.severity:<9}{first.check:<{_COLUMN}}"
    yield label + printable(message)
    blank = " " * len(label)
    if first.hint:
        yield f"{blank}hint: {printable(first.hint.replace(name, names) if name else first.hint)}"
    if experiments:
        yield f"{blank}affects: {_truncate(experiments)}"


def _host(finding: Finding) -> str:
    return "" if finding.subject == CLUSTER else finding.subject.removeprefix("host ")


def _truncate(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MAX_NAMES])} and {more} more"
