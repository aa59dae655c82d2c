"""The doctor's report for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from chaos.doctor.check import Severity
from chaos.doctor.findings import CLUSTER, Finding
from chaos.model.text import printable
from chaos.session.doctor import Report

_SHOWN = 4  # names before "and N more"
_COLUMN = 19


def told(report: Report, *, everything: bool) -> list[str]:
    """What each check says, the worst first, with what mends it; what is in order one line for all hosts.

    ``everything``: host by host. Experiments that are not made for this cluster come last.
    """
    simulated = ", simulated" if report.simulated else ""
    lines = [f"cluster {report.server} (Kubernetes {report.kubernetes}{simulated}), {_many(report.hosts, 'host')}", ""]
    shown = [finding for finding in report.findings if not _aside(finding)]
    for group in [[finding] for finding in shown] if everything else _alike(shown):
        lines += _group(group)
    unfit = sorted({name for finding in report.findings if _aside(finding) for name in finding.experiments})
    lines += ["", "not made for this cluster:"] if unfit else []
    for name in unfit:
        why = next(finding for finding in report.findings if _aside(finding) and name in finding.experiments)
        lines.append(f"  {name}: {printable(why.says.removeprefix(f'{name}: '))}")
    count = len(report.possible)
    return [*lines, "", f"{count} of {count + len(report.impossible)} experiments can be run here"]


def _aside(finding: Finding) -> bool:
    return finding.unfit and finding.severity is Severity.NOTE


def _alike(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Those of one check that say the same of several hosts."""

    def words(finding: Finding) -> tuple[str, str, str, tuple[str, ...]]:
        name = _host(finding)
        plain = finding.says.replace(name, "") if name else finding.says
        return str(finding.severity), finding.check, plain, finding.experiments

    order = {severity: place for place, severity in enumerate(reversed(Severity))}
    ordered = sorted(findings, key=lambda finding: (order[finding.severity], words(finding)))
    return (list(group) for _, group in groupby(ordered, key=words))


def _group(group: Sequence[Finding]) -> Iterator[str]:
    first, hosts = group[0], [name for finding in group if (name := _host(finding))]
    name, where = _host(first), _some(hosts)
    says = first.says.replace(name, where) if name and name in first.says else first.says
    if name and name not in first.says:
        says = f"{where}: {says}"
    label = f"{first.severity:<9}{first.check:<{_COLUMN}}"
    yield label + printable(says)
    blank = " " * len(label)
    if first.mend:
        yield f"{blank}mend: {printable(first.mend.replace(name, where) if name else first.mend)}"
    if first.experiments:
        yield f"{blank}touches: {_some(first.experiments)}"


def _host(finding: Finding) -> str:
    return "" if finding.subject == CLUSTER else finding.subject.removeprefix("host ")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_SHOWN])} and {more} more"


def _many(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}"
