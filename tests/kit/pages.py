"""One of each page that nodefall writes, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos.core.store.run_directory import RECORDING
from chaos.rehearsal.comparisons import CompareOptions, compare_all
from chaos.rehearsal.forecast.document import Rehearsal, Victims, summarize
from chaos.rehearsal.forecast.formats import rehearsal_page
from chaos.rehearsal.forecast.sample import Finding, FindingKind, Sample
from chaos.reports.comparison.formats import comparison_page
from chaos.reports.day.formats import FORMATS
from chaos.reports.history.trend import trend
from chaos.reports.history.trend_page import trend_page
from chaos.reports.run import html
from chaos.verdicts.outcome.measure import Outcome
from tests.kit.recorded_days import hostile_view
from tests.kit.rehearsals import rehearse
from tests.kit.reported_runs import FOLDER, SCENES, load
from tests.kit.stored_runs import DAY, NOW, result_of, stored, within


def _run(name: str) -> Callable[[], str]:
    return lambda: html.render(*load(name))


def _cordon() -> str:
    run = rehearse("cordon")
    return html.render(run.result, run.timeline)


def _comparison() -> str:
    return comparison_page(
        compare_all(CompareOptions(tuple(str(FOLDER / each / RECORDING) for each in ("violated", "held")), FOLDER))
    )


def _trend() -> str:
    seconds = [*range(1, 20), *range(40, 60)]
    with TemporaryDirectory() as folder:
        runs = stored(Path(folder), *(result_of(within(s), started=NOW + n * DAY) for n, s in enumerate(seconds)))
        found = trend("e", runs)
    assert found
    return trend_page(found)


def _rehearsal(each: str) -> str:
    findings = (
        Finding(FindingKind.SINGLE_REPLICA, "shop/db", 1, 130.0, False, "why"),
        Finding(FindingKind.NO_ROOM, "shop/web", 2, 20.0, True, "0/3 nodes | <b>available</b>"),
    )
    samples = [Sample(1, each and "w1", None, findings, outcome=Outcome(600.0)), Sample(2, each and "w2", None)]
    runs = summarize(samples, ("a change",), Victims({"w1": ("w1",), "w2": ("w2",)} if each else {}))
    about = ("lost", "Title", "hash", "s.gz", "digest", "v1.36.2", (1, 2))
    return rehearsal_page(Rehearsal(*about, each, 1, "w1 hurts most", runs, runs, ("x",)))


PAGES: Mapping[str, Callable[[], str]] = {
    **{name: _run(name) for name in SCENES},
    "cordon": _cordon,
    "comparison": _comparison,
    "trend": _trend,
    "day": lambda: FORMATS["html"].render(hostile_view("a <text> & more")),
    "rehearsal": lambda: _rehearsal(""),
    "victims": lambda: _rehearsal("node"),
}
