"""All renderers: hostile names and messages do not change the structure, and required content is present."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chaos.core import outside, registry
from chaos.core.action import ProofStatus
from chaos.core.errors import PluginError
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import ValueLimit
from chaos.reports.run import html, json_, junit, markdown
from chaos.reports.run.outline import SIMULATED
from chaos.reports.run.page.page_data import unpack
from chaos.reports.run.renderer import Renderer, load_renderers
from chaos.reports.tables import escape, escape_line

Made = tuple[RunResult, Timeline]
Make = Callable[[str], Made]

PAYLOADS = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '" onmouseover="alert(1)" x=\'',
    "]]>&lt;&amp;<b>&#x41;",
    "a|b\\|c\\\\|d",
    "line\nbreak\r\n\r\n# head\n| x | y |\n```",
    "`code` **bold** _it_ [a](javascript:x) ![i](http://e) <http://e> ~~s~~ $x$",
    "http://evil.example www.evil.example me@evil.example",
    "\x00\x01\x08\x0b\x1b[31m\x1b]8;;http://e\x07\x7f\x9b",
    "\ufffe\uffff\ud800\udfff\u202e\u2028\U000e0041",
    "{{7*7}} ${x} %s {0}",
    "x" * 150,
)
ANY = st.text(st.characters(exclude_categories=()), max_size=60) | st.sampled_from(PAYLOADS)
MENTIONS = r"\@&#8203;team \#&#8203;12 \!&#8203;12 \$&#8203;12 %&#8203;12 &amp;&#8203;12 \~&#8203;bug ^&#8203;12"
# The fixture is session-scoped and stateless, so examples can share it.
PROPERTY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)


def framed(text: str) -> str:
    """Frame the text, so that it is never empty or a word of nodefall: only escaping can change the structure."""
    return f"q{text}q"


class Page(HTMLParser):
    """Elements with their attribute names, all attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.inside: dict[str, str] = {}
        self.words: list[str] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]
        kind = dict(attrs).get("type") or tag
        self._open = kind if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.inside[self._open] = self.inside.get(self._open, "") + data
        else:
            self.words.append(data)


def markdown_shape(text: str) -> list[str]:
    """Types of all tokens of an independent Markdown parser."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    return [token.type for token in (*tokens, *inner)]


def no_controls(text: str) -> bool:
    return all(c == "\n" or c.isprintable() for c in text)


def renderers() -> Iterable[Renderer]:
    return load_renderers().values()


def page_renderers() -> Iterable[Renderer]:
    """Those with all of a run, for people."""
    return [renderer for renderer in renderers() if renderer.name != "openmetrics"]


def test_every_renderer_is_discovered_with_a_distinct_file() -> None:
    assert {r.name: r.file for r in renderers()} == {
        "html": "report.html",
        "json": "result.json",
        "junit": "junit.xml",
        "markdown": "report.md",
        "openmetrics": "metrics.txt",
    }


@pytest.mark.parametrize("renderer", renderers(), ids=lambda r: r.name)
@given(text=ANY)
@PROPERTY
def test_output_is_utf8_without_control_characters(renderer: Renderer, hostile: Make, text: str) -> None:
    out = renderer.render(*hostile(text))
    assert no_controls(out)
    assert out.encode("utf-8").endswith(b"\n")


@given(text=ANY)
@PROPERTY
def test_html_keeps_its_structure_with_any_text(hostile: Make, text: str) -> None:
    page, plain = Page(html.render(*hostile(framed(text)))), Page(html.render(*hostile("qq")))
    assert page.elements == plain.elements
    assert page.inside["script"] == plain.inside["script"]
    assert page.inside["style"] == plain.inside["style"]
    packed = page.inside["application/octet-stream"]
    assert re.fullmatch(r"[A-Za-z0-9+/]+=*", packed)
    data, expected = unpack(packed), unpack(plain.inside["application/octet-stream"])
    assert all(no_controls(string) for string in data["strings"])
    for part in ("steps", "undo", "verdicts", "blinds", "charts"):
        assert shape(data[part]) == shape(expected[part])
    for table in ("lanes", "spans", "taints", "marks", "observations"):
        assert {key: len(column) for key, column in data[table].items()} == {
            key: len(column) for key, column in expected[table].items()
        }


def shape(value: Any) -> Any:
    """Return the JSON value with every string blanked."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "" if isinstance(value, str) else value


@given(text=ANY)
@PROPERTY
def test_markdown_keeps_its_structure_with_any_text(hostile: Make, text: str) -> None:
    out = markdown.render(*hostile(framed(text)))
    kinds, plain = markdown_shape(out), markdown_shape(markdown.render(*hostile("qq")))
    assert [k for k in kinds if k != "text_special"] == [k for k in plain if k != "text_special"]
    for block in out.split("\n\n"):
        widths = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


@given(text=ANY)
@PROPERTY
def test_junit_parses_and_keeps_its_structure(hostile: Make, text: str) -> None:
    out, plain = (ET.fromstring(junit.render(*hostile(t))) for t in (framed(text), "qq"))  # noqa: S314 (our own)
    assert [(e.tag, sorted(e.attrib)) for e in out.iter()] == [(e.tag, sorted(e.attrib)) for e in plain.iter()]


@given(text=ANY)
@PROPERTY
def test_json_decodes_to_the_result(hostile: Make, text: str) -> None:
    result, timeline = hostile(text)
    back = msgspec.json.decode(json_.render(result, timeline), type=RunResult)
    assert back == hostile(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))[0]


def test_json_resolves_evidence_numbers(recorded: Made) -> None:
    document = json.loads(json_.render(*recorded))
    (seq,) = document["hypothesis"][0]["evidence"]
    found = document["resolved"][str(seq)]
    assert (found["seq"], found["kind"], found["node"]) == (seq, "nodes", "")
    assert found["what"].startswith("ra-worker: Ready=False (KubeletNotReady: node is shutting down)")
    assert sorted(document) == list(document)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain words, 12:30", "plain words, 12:30"),
        ("a|b", "a\\|b"),
        ("`x` *y* _z_", "\\`x\\` \\*y\\* \\_z\\_"),
        ("[a](http://e)", "\\[a\\](http\\://e)"),
        ("www.evil.example", "www\\.evil.example"),
        ("WWW.evil.example", "WWW\\.evil.example"),
        ("me@evil", "me\\@&#8203;evil"),
        ("@team #12 !12 $12 %12 &12 ~bug ^12", MENTIONS),
        ("GH-12, 100 %, a ~ b, 5 & 6", "GH-&#8203;12, 100 %, a \\~ b, 5 &amp; 6"),
        ("<b>&lt;", "\\<b\\>&amp;lt;"),
        ("two\nlines", "two lines"),
        ("\x1b[0m", "\\\\x1b\\[0m"),
        ("back\\", "back\\\\"),
    ],
)
def test_markdown_escapes(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("1. x", "1\\. x"),
        ("2) x", "2\\) x"),
        ("- x", "\\- x"),
        ("+ x", "\\+ x"),
        ("=== x", "\\=== x"),
        ("/close", "\\/close"),
    ],
)
def test_markdown_line_starts(text: str, escaped: str) -> None:
    assert escape_line(text) == escaped


@pytest.mark.parametrize("renderer", [r for r in page_renderers() if r.name != "json"], ids=lambda r: r.name)
@pytest.mark.parametrize("simulated", [True, False])
def test_only_simulated_clusters_are_marked(renderer: Renderer, simulated: bool, recorded: Made) -> None:
    result, timeline = recorded
    out = renderer.render(msgspec.structs.replace(result, simulated=simulated), timeline)
    assert (SIMULATED in out) is simulated
    assert ("graceful-poweroff (simulated)" in out) is simulated


@pytest.mark.parametrize("renderer", page_renderers(), ids=lambda r: r.name)
def test_leftovers_pending_undo_and_notes_are_rendered(renderer: Renderer, hostile: Make) -> None:
    result, timeline = hostile("x")
    undo = (msgspec.structs.replace(result.undo[0], because="the lock is gone"),)
    changed = msgspec.structs.replace(result, undo=undo, leftovers=("namespace nodefall-1",), notes=("seen twice",))
    out = renderer.render(changed, timeline)
    for text in ("the lock is gone", "namespace nodefall-1", "seen twice"):
        assert text in out


@pytest.mark.parametrize("renderer", [r for r in renderers() if r.name in ("html", "markdown")], ids=lambda r: r.name)
def test_judging_a_recording_has_no_leftovers(renderer: Renderer, recorded: Made) -> None:
    result, timeline = recorded
    words = "udged from a recording: nothing was changed"
    assert words in renderer.render(msgspec.structs.replace(result, run="", undo=(), leftovers=()), timeline)
    assert words not in renderer.render(msgspec.structs.replace(result, run="r1", undo=(), leftovers=()), timeline)


@pytest.mark.parametrize("renderer", page_renderers(), ids=lambda r: r.name)
def test_rendering_works_without_a_timeline(renderer: Renderer, recorded: Made) -> None:
    out = renderer.render(recorded[0], Timeline())
    assert "not part of this timeline" in out or renderer.name == "html"


@pytest.mark.parametrize("renderer", page_renderers(), ids=lambda r: r.name)
def test_run_details_are_rendered(renderer: Renderer, recorded: Made) -> None:
    out = renderer.render(*recorded).replace("\\", "").replace("&#8203;", "")
    assert all(text in out for text in ("ann@laptop/4242-ab12cd34", "9.8.7", "c0ffee"))


def test_rendering_is_deterministic(recorded: Made) -> None:
    for renderer in renderers():
        assert renderer.render(*recorded) == renderer.render(*recorded)


def test_json_has_the_deprecated_keys_of_0_1_0(recorded: Made) -> None:
    document = json.loads(json_.render(*recorded))
    new_keys = {
        "by": "started_by",
        "left_behind": "leftovers",
        "nodefall": "nodefall_version",
        "steady": "steady_state",
    }
    assert {old: document[old] for old in new_keys} == {old: document[new] for old, new in new_keys.items()}
    assert document["steps"][0]["shown"] == document["steps"][0]["proof_status"] == "proven"
    unproven = msgspec.structs.replace(recorded[0].steps[0], proof_status=ProofStatus.UNPROVEN)
    changed = msgspec.structs.replace(recorded[0], steps=(unproven,))
    assert json.loads(json_.render(changed, recorded[1]))["steps"][0]["shown"] == "not shown"
    assert msgspec.json.decode(json_.render(changed, recorded[1]), type=RunResult) == changed
    assert document["hypothesis"][2]["assumed"] == document["hypothesis"][2]["assumed_facts"] == ["a=40s"]


def test_json_has_limits_only_where_there_are_any(recorded: Made) -> None:
    result, timeline = recorded
    assert [v for v in json.loads(json_.render(result, timeline))["hypothesis"] if "limits" in v] == []
    limit = ValueLimit("query", "errors", "value", "at-most", 0.1, {"job": "a"})
    first, *others = result.hypothesis
    limited = msgspec.structs.replace(result, hypothesis=(replace(first, limits=(limit,)), *others))
    text = json_.render(limited, timeline)
    found = [verdict.get("limits") for verdict in json.loads(text)["hypothesis"]]
    assert found == [
        [
            {
                "source": "query",
                "name": "errors",
                "measure": "value",
                "operator": "at-most",
                "value": 0.1,
                "labels": {"job": "a"},
            }
        ],
        *(None for _ in others),
    ]
    assert msgspec.json.decode(text, type=RunResult) == limited


class _EntryPoint:
    """An entry point of another distribution."""

    def __init__(self, renderer: Renderer) -> None:
        self.name, self.value, self.dist = renderer.name, "outside:RENDERER", None
        self._renderer = renderer

    def load(self) -> Renderer:
        return self._renderer


@pytest.mark.parametrize(
    ("name", "file", "error"),
    [
        ("text", "report.txt", ""),
        ("html", "other.html", "duplicate plug-in name 'html'"),
        ("text", "report.html", "duplicate report file 'report.html': renderers 'html' and 'text'"),
    ],
)
def test_renderers_of_other_distributions(name: str, file: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Renderer(name, file, "plain text", lambda _result, _timeline: "text\n")
    points = {registry.Group.RENDERERS: [_EntryPoint(plugin)]}
    monkeypatch.setattr(outside, "entry_points", lambda group: points.get(group, []))
    load = load_renderers.__wrapped__
    if error:
        with pytest.raises(PluginError, match=error):
            load()
    else:
        assert load()[name].file == file
