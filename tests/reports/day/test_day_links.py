"""What the report of a day links to is in the reports of its runs."""

from __future__ import annotations

from chaos.reports.day.lessons import lessons
from chaos.reports.day.view import make_view
from chaos.reports.run import html
from tests.kit.recorded_days import ran, record
from tests.kit.reported_runs import load


def test_links_to_verdicts_have_their_target() -> None:
    for name, key in (("violated", "hypothesis-1"), ("aborted", "abort-0")):
        result, timeline = load(name)
        view = make_view([record(ran("one", "violated"))], {"one-1": result})
        targets = [lesson.link.partition("#")[2] for lesson in lessons(view) if "#" in lesson.link]
        assert key in targets
        page = html.render(result, timeline)
        assert [target for target in targets if f'id="{target}"' not in page] == []
