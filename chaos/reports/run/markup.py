"""HTML in which every string is escaped, except markup of type Html."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from chaos.core.text import printable

_VOID = frozenset({"meta", "line", "rect", "path", "input"})


class Html(str):
    """Markup; any other string is text and is escaped."""

    __slots__ = ()


SPACE = Html(" ")  # text() strips its edges


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """Make an element. ``class_`` and ``data_x`` become ``class`` and ``data-x``; children are escaped unless Html."""
    rendered = "".join(f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{rendered}/>")
    return Html(f"<{name}{rendered}>{join(children)}</{name}>")


def text(value: str) -> Html:
    """Escape ``value`` for content and quoted attributes, control characters included; Html stays unchanged."""
    return value if isinstance(value, Html) else Html(escape(printable(value), quote=True))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Join parts, each escaped unless it is Html."""
    return Html(between.join(text(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[str], caption: str, **attributes: str) -> Html:
    """Make a table with a caption for screen readers; ``rows`` are ``tr`` elements."""
    cells = join(tag("th", cell, scope="col") for cell in head)
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", cells)),
        tag("tbody", join(rows, "\n")),
        **attributes,
    )
