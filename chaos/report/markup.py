"""HTML that is escaped unless it says that it is markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from chaos.model.text import printable

_VOID = frozenset({"meta", "line", "rect", "path"})


class Html(str):
    """Markup; everything else is text and gets escaped."""

    __slots__ = ()


SPACE = Html(" ")  # text() strips its edges


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """An element. ``class_`` and ``data_x`` become ``class`` and ``data-x``; children that are not Html are escaped."""
    told = "".join(f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{told}/>")
    return Html(f"<{name}{told}>{join(children)}</{name}>")


def text(value: str) -> Html:
    """``value`` escaped for content and quoted attributes, invisible characters shown; markup stays."""
    return value if isinstance(value, Html) else Html(escape(printable(value), quote=True))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Parts, each escaped unless it is markup."""
    return Html(between.join(text(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[str], caption: str, **attributes: str) -> Html:
    """A table with a caption for screen readers; ``rows`` are ``tr`` elements."""
    cells = join(tag("th", cell, scope="col") for cell in head)
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", cells)),
        tag("tbody", join(rows, "\n")),
        **attributes,
    )


def script_json(value: Any) -> Html:
    """JSON that nothing in a script element can end or open, as ``</script>`` and ``<!--`` would."""
    plain = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return Html(plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
