"""The report of the doctor as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from chaos.app.doctor import Report
from chaos.core.text import printable
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import CLUSTER, Finding

_MAX_NAMES = 4  # names before "and N more"
_COLUMN = 19


def render(report: Report, *, everything: bool) -> list[str]:
    """The findings, most severe first, with hints; one line for all hosts with the same finding.

    ``everything``: one line per host. Experiments that do not match the cluster come last.
    """
    simulated = ", simulated" if report.simulated else ""
    lines = [
        f"cluster {report.server} (Kubernetes {report.kubernetes}{simulated}), {_pluralize(report.hosts, 'host')}",
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


def _pluralize(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}"
