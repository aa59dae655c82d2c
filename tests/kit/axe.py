"""What axe-core says of a page."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

from tests.kit.browser import Page

# A contrast that axe cannot compute is none that was tested. It computes none of pictures and lone signs, for which
# there is tests/reports/run/page/test_colours.py, and none of lines that a list has scrolled half out.
_UNDECIDED = {"nonBmp", "elmPartiallyObscured", "elmPartiallyObscuring"}
_OPTIONS = {"resultTypes": ["violations", "incomplete"]}


def findings(page: Page) -> list[str]:
    """Violations and undecided contrasts, with the elements that have them."""
    found = Axe().run(page.tab, options=_OPTIONS).response
    violated = [(rule, node) for rule in found["violations"] for node in rule["nodes"]]
    undecided = [
        (rule, node)
        for rule in found["incomplete"]
        for node in rule["nodes"]
        if rule["id"] == "color-contrast"
        and not node["html"].startswith("<text")
        and node["any"][0]["data"].get("messageKey") not in _UNDECIDED
    ]
    return [
        f"{rule['impact']}: {rule['id']}: {node['target']}: {node['failureSummary']}"
        for rule, node in [*violated, *undecided]
    ]
