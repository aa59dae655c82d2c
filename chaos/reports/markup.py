"""Self-contained pages: markup in which every string is escaped, templates, and inlined assets; nothing else loads."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from chaos.core.text import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_VOID = frozenset({"line", "rect"})
_DRAWN_IN = ("base.css", "timeline.css", "day.css", "forecast.css", "trend.css")
_WHOLE = (".still", ".calendar", ".chart")  # drawings: what is within them is what it is anywhere
_PAINTS = ("fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor")


class Html(str):
    """Markup; any other value is text and is escaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def text(value: object) -> Html:
    """Escape ``value`` for content and quoted attributes, control characters included; markup stays unchanged."""
    if hasattr(value, "__html__"):
        return Html(value)
    return Html(escape(printable(str(value)), quote=True))


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """An element of a drawing. ``class_`` and ``data_x`` become ``class`` and ``data-x``; children are escaped.

    It has the colors of its class as attributes, too: Jenkins and mail programs show pages without their styles.
    """
    given = {key.strip("_").replace("_", "-"): value for key, value in attributes.items()}
    rendered = attributes_text({**_paint(given.get("class", "")), **given})
    if name in _VOID:
        return Html(f"<{name}{rendered}/>")
    return Html(f"<{name}{rendered}>{join(children)}</{name}>")


@cache
def _paint(classes: str) -> dict[str, str]:
    """What the styles say of a shape with these classes, as attributes, in the colors of paper."""
    names, found = set(classes.split()), dict[str, str]()
    for selector, painted in _painted():
        if selector <= names:
            found |= painted
    return found


@cache
def _painted() -> list[tuple[frozenset[str], dict[str, str]]]:
    """Rules of the styles that paint shapes: the classes that they select, and the values."""
    css = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", load_assets(*_DRAWN_IN))
    colors = dict(re.findall(r"(--[\w-]+): ([^;]+);", css))
    rules = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", css):
        pairs = (pair.split(":", 1) for pair in body.split(";") if ":" in pair)
        values = {
            name.strip(): re.sub(r"var\(([^)]+)\)", lambda m: colors[m[1]], value.strip()) for name, value in pairs
        }
        painted = {name: value for name, value in values.items() if name in _PAINTS}
        words = [selector.split() for selector in _alternatives(selectors.strip())] if painted else []
        ends = [parts[-1] for parts in words if len(parts) == 1 or parts[0] in _WHOLE]
        rules += [(frozenset(classes), painted) for end in ends if (classes := re.findall(r"\.([\w-]+)", end))]
    return rules


def _alternatives(selectors: str) -> list[str]:
    """``.run:is(.a, .b), .c`` as ``.run.a``, ``.run.b`` and ``.c``."""
    if match := re.search(r"([^,]*):is\(([^)]*)\)", selectors):
        expanded = ", ".join(f"{match[1].strip()}{each.strip()}" for each in match[2].split(","))
        return _alternatives(selectors[: match.start()] + expanded + selectors[match.end() :])
    return [each.strip() for each in selectors.split(",")]


def key(kind: str) -> Html:
    """The sign of a legend for shapes of this class."""
    shape = tag("rect", width="14", height="11", class_=kind)
    return tag("svg", shape, width="14", height="11", class_=f"key {kind}", aria_hidden="true")


def attributes_text(attributes: Mapping[str, str]) -> Html:
    """Attributes of an element, each with a space before it; without those that are empty."""
    return Html("".join(f' {name}="{text(value)}"' for name, value in attributes.items() if value))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Join parts, each escaped unless it is markup."""
    return Html(between.join(text(part) for part in parts))


def render_page(
    template: str, styles: Sequence[str], scripts: Sequence[str] = (), *, connects: bool = False, **values: Any
) -> str:
    """A page of a template, ending in a newline. ``styles``, ``scripts``: assets. ``values``: ``title`` and others.

    Its content security policy admits only this style and these scripts. ``connects``: they may also ask the server
    that the page comes from.
    """
    style, script = load_assets(*styles), load_assets(*scripts)
    inlined = {"style": style, "script": script, "policy": policy(style, script, connects=connects)}
    return render_template(template, **inlined, **values) + "\n"


def render_template(template: str, **values: Any) -> Html:
    """A file of the folder ``templates`` with these values."""
    return Html(_templates().get_template(template).render(values))


@cache
def _templates() -> Environment:
    """The templates. Jinja takes 60 ms to be imported, so only a page imports it; each template is compiled once."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415

    folder = files("chaos.reports") / "templates"
    found = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        finalize=text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"attributes": attributes_text, "key": key}
    return found


@cache
def load_assets(*names: str) -> Html:
    """Files of the folder ``assets``, one after the other."""
    folder = files("chaos.reports") / "assets"
    return Html("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def policy(style: str, script: str, *, connects: bool = False) -> str:
    """The content security policy of :func:`render_page`."""
    scripts = f"; script-src {_source(script)}" if script else ""
    server = "; connect-src 'self'" if connects else ""
    return f"default-src 'none'; style-src {_source(style)}{scripts}{server}; base-uri 'none'; form-action 'none'"


def _source(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
