"""The selectors of metrics in a PromQL query, for the age of the samples that it is computed from.

Grammar: prometheus/prometheus promql/parser/lex.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    |(?P<number>\d[\w.]*)
    |(?P<name>[A-Za-z_:][\w:]*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})  # of names of labels
_WORDS = frozenset({"and", "or", "unless", "atan2", "bool", "offset", "inf", "nan"})
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def selectors(query: str) -> list[str]:
    """Each selector, as ``up{job="a"}``, without ranges and offsets; none of a query that is not understood."""
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(query) if match.lastgroup != "space"]
    return list(dict.fromkeys(_selectors(tokens)))


def _selectors(tokens: list[tuple[str, str]]) -> Iterator[str]:
    position = 0
    while position < len(tokens):
        kind, text = tokens[position]
        position += 1
        following = tokens[position][1] if position < len(tokens) else ""
        if kind == "name" and text.lower() in _LISTS:
            position = _end_of(tokens, position) if following == "(" else position
        elif kind == "name" and following != "(" and following.lower() not in _LISTS and text.lower() not in _WORDS:
            end = _end_of(tokens, position) if following == "{" else position
            yield text + "".join(token for _, token in tokens[position:end])
            position = end
        elif text in ("{", "["):
            end = _end_of(tokens, position - 1)
            if text == "{":
                yield "".join(token for _, token in tokens[position - 1 : end])
            position = end


def _end_of(tokens: list[tuple[str, str]], start: int) -> int:
    """The position behind the bracket that closes the one at ``start``."""
    opening = tokens[start][1]
    depth = 0
    for position in range(start, len(tokens)):
        kind, text = tokens[position]
        if kind == "other":
            depth += (text == opening) - (text == _CLOSING[opening])
        if not depth:
            return position + 1
    return len(tokens)


def newest_of(queries: list[str]) -> str:
    """A query for the newest sample of that selector whose newest sample is the oldest.

    "" without a selector, and for one without a name: ``timestamp`` drops names, and refuses two equal sets of labels.
    """
    found = list(dict.fromkeys(selector for query in queries for selector in selectors(query)))
    parts = [f'label_replace(max(timestamp({each})), "n", "{n}", "", "")' for n, each in enumerate(found)]
    has_names = not any(each.startswith("{") for each in found)
    return f"min({' or '.join(parts)})" if parts and has_names else ""
