"""The doctor's report for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from chaos.app.doctor import Report
from chaos.model.text import printable
from chaos.preflight.check import Severity
from chaos.preflight.findings import CLUSTER, Finding

_MAX_NAMES = 4  # names before "and N more"
_COLUMN = 19


def render(report: Report, *, everything: bool) -> list[str]:
    """What each check says, the worst first, with what mends it; what is in order one line for all hosts.

    ``everything``: host by host. Experiments that are not made for this cluster come last.
    """
    simulated = ", simulated" if report.simulated else ""
    lines = [
        f"cluster {report.server} (Kubernetes {report.kubernetes}{simulated}), {_pluralize(report.hosts, 'host')}",
        "",
    ]
    shown = [finding for finding in report.findings if not _is_other_cluster(finding)]
    for group in [[finding] for finding in shown] if everything else _group_similar(shown):
        lines += _render_group(group)
    unfit = sorted({name for finding in report.findings if _is_other_cluster(finding) for name in finding.experiments})
    lines += ["", "not made for this cluster:"] if unfit else []
    for name in unfit:
        why = next(finding for finding in report.findings if _is_other_cluster(finding) and name in finding.experiments)
        lines.append(f"  {name}: {printable(why.message.removeprefix(f'{name}: '))}")
    count = len(report.possible)
    return [*lines, "", f"{count} of {count + len(report.impossible)} experiments can be run here"]


def _is_other_cluster(finding: Finding) -> bool:
    return finding.is_incompatible and finding.severity is Severity.NOTE


def _group_similar(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Those of one check that say the same of several hosts."""

    def words(finding: Finding) -> tuple[str, str, str, tuple[str, ...]]:
        name = _host(finding)
        plain = finding.message.replace(name, "") if name else finding.message
        return str(finding.severity), finding.check, plain, finding.experiments

    order = {severity: place for place, severity in enumerate(reversed(Severity))}
    ordered = sorted(findings, key=lambda finding: (order[finding.severity], words(finding)))
    return (list(group) for _, group in groupby(ordered, key=words))


def _render_group(group: Sequence[Finding]) -> Iterator[str]:
    first, hosts = group[0], [name for finding in group if (name := _host(finding))]
    name, where = _host(first), _truncate(hosts)
    says = first.message.replace(name, where) if name and name in first.message else first.message
    if name and name not in first.message:
        says = f"{where}: {says}"
    label = f"{first.severity:<9}{first.check:<{_COLUMN}}"
    yield label + printable(says)
    blank = " " * len(label)
    if first.hint:
        yield f"{blank}mend: {printable(first.hint.replace(name, where) if name else first.hint)}"
    if first.experiments:
        yield f"{blank}touches: {_truncate(first.experiments)}"


def _host(finding: Finding) -> str:
    return "" if finding.subject == CLUSTER else finding.subject.removeprefix("host ")


def _truncate(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MAX_NAMES])} and {more} more"


def _pluralize(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}"
