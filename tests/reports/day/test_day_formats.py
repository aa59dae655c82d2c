"""All formats of a day's report: hostile texts do not change their structure, and nothing is loaded or run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chaos.core.verdict import Status
from chaos.reports.day.formats import FORMATS
from tests.kit.recorded_days import BEGIN, hostile_view, judged, ran, record, result, skipped, view

PAYLOADS = (
    "</style><script>alert(1)</script>",
    "</title><img src=x onerror='alert(1)'>",
    '" onmouseover="alert(1)" x=\'',
    "]]>&lt;&amp;<b>&#x41;",
    "a|b\\|c\\\\|d",
    "line\nbreak\r\n\r\n# head\n| x | y |\n```",
    "`code` **bold** [a](javascript:x) ![i](http://e) <http://e> ~~s~~",
    "javascript:alert(1)",
    "../../../../etc/passwd",
    "\x00\x01\x1b[31m\x7f\x9b",
    "\ufffe\ud800\u202e\u2028\U000e0041",
    "x" * 150,
)
ANY = st.sampled_from(PAYLOADS) | st.text(st.characters(exclude_categories=()), max_size=40)
FORMAT = pytest.mark.parametrize("name", FORMATS)


class Page(HTMLParser):
    """Elements with their attribute names, and the values of attributes that load or run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.targets: list[str] = []
        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.targets += [value or "" for name, value in attrs if name in ("href", "src", "style")]
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""


def markdown_shape(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    return [token.type for token in (*tokens, *inner)]


def shape(name: str, text: str) -> object:
    """What must not depend on the texts in a report."""
    if name == "html":
        return Page(text).elements
    if name == "junit":
        return [element.tag for element in ET.fromstring(text).iter()]  # noqa: S314 (our own output)
    return markdown_shape(text) if name in ("md", "review") else type(json.loads(text))


@FORMAT
@given(text=ANY)
@settings(deadline=None, max_examples=25)
def test_no_text_changes_the_structure(name: str, text: str) -> None:
    rendered = FORMATS[name].render(hostile_view(f"q{text}q"))
    assert rendered.encode().endswith(b"\n")
    assert all(char == "\n" or char.isprintable() for char in rendered)
    assert shape(name, rendered) == shape(name, FORMATS[name].render(hostile_view("plain")))


@pytest.mark.parametrize("text", PAYLOADS)
def test_a_page_has_no_script_and_leads_only_to_reports_of_runs(text: str) -> None:
    page = Page(FORMATS["html"].render(hostile_view(text, stamp=text)))
    assert not {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "link", "form"}
    assert all(re.fullmatch(r"\.\./\.\./\.\./x/[^/]+/report\.html(#[a-z]+-\d+)?", each) for each in page.targets)


def test_the_policy_admits_only_the_style_of_the_page() -> None:
    text = FORMATS["html"].render(view(record(ran("drain"))))
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    expected = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert Page(text).policy == expected
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_the_parts_of_the_page() -> None:
    """The page has its parts in the order in which they are read."""
    text = FORMATS["html"].render(view(record(ran("drain"))))
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert headings == ["Verdicts", "What was learned", "Calendar", "Timeline of the day", "How it was run"]


def test_junit_has_a_suite_for_each_cluster_and_a_case_for_each_run() -> None:
    runs = (ran("a"), ran("b", "violated", reason="too slow"), ran("c", "interrupted"), skipped("d", "gate x"))
    made = view(record(*runs), record(ran("a"), cluster="prod"))
    root = ET.fromstring(FORMATS["junit"].render(made))  # noqa: S314 (our own output)
    staging, prod = sorted(root, key=lambda suite: -int(suite.get("tests", "")))
    assert (staging.get("name"), prod.get("name")) == ("monthly on staging", "monthly on prod")
    assert [staging.get(key) for key in ("tests", "failures", "errors", "time")] == ["4", "1", "2", "360.000"]
    assert staging.get("timestamp") == "2026-12-01T08:59:00"
    outcomes = [[(child.tag, child.get("type")) for child in case] for case in staging.findall("testcase")]
    assert outcomes == [[], [("failure", "violated")], [("error", "interrupted")], [("error", "skipped")]]
    assert staging.findall("testcase")[1][0].get("message") == "too slow"


def test_the_review_has_what_was_expected_what_happened_and_what_to_do() -> None:
    held, late = judged("budget", Status.HELD), judged("pods move", Status.VIOLATED, "one pod stayed")
    made = view(
        record(ran("drain", "violated"), skipped("power", "stopped: drain (1) was violated")),
        results={"drain-1": result(held, late, status=Status.VIOLATED)},
    )
    text = FORMATS["review"].render(made)
    assert "- budget: true within 40s\n- pods move: true within 40s\n" in text
    assert "- power comes true\n" in text  # it never ran: what the document expects
    assert "drain was **violated**, Tue 2026-12-01 09:00:00 UTC, took 2m ([report](../../../x-drain/" in text
    assert "  - violated: pods move: one pod stayed (expected true within 40s, observed false after 40s)" in text
    assert "  - held: budget: it was seen" in text
    assert "- [ ] violated: drain: pods move (one pod stayed): fix it, or correct the expectation (who" in text
    assert "- [ ] not run: power: it did not take place (stopped: drain (1) was violated): remove the reason" in text


def test_json_has_all_of_the_day() -> None:
    document = json.loads(FORMATS["json"].render(view(record(ran("drain", "violated", reason="late")))))
    assert (document["status"], document["exit_code"], document["version"]) == ("violated", 1, 1)
    (run,) = document["runs"]
    assert (run["entry"], run["result"], run["begun"], run["run"]) == ("drain", "violated", BEGIN, "drain-1")
    assert [lesson["kind"] for lesson in document["lessons"]] == ["violated"]
    assert [moment["kind"] for moment in document["moments"]] == ["day", "entry", "entry", "day"]


def test_markdown_has_a_column_for_each_cluster() -> None:
    made = view(record(ran("a"), ran("b", "violated", reason="late")), record(ran("a"), cluster="prod"))
    text = FORMATS["md"].render(made)
    assert "| entry | prod | staging |" in text or "| entry | staging | prod |" in text
    assert "✗ violated: late, 2m" in text
    assert "not on this cluster" in text
