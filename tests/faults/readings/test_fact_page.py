"""docs/facts.md is up to date, and each fact states type and form of its value."""

from __future__ import annotations

import re
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from tools import fact_pages

# First words of the docstring, by the type that ``parse`` returns.
TYPES = {
    str: "Text",
    bool: "True or false",
    int: "Whole number",
    float: "Number",
    list: r"(Sorted list|List) of",
    dict: "Mapping",
}


def test_the_page_is_up_to_date() -> None:
    assert fact_pages.PAGE.read_text(encoding="utf-8") == fact_pages.page(), "run `python tools/fact_pages.py`"


@pytest.mark.parametrize(
    ("system", "name"),
    [*(("linux", name) for name in fact_pages.LINUX_FACTS), *(("windows", name) for name in fact_pages.WINDOWS_FACTS)],
)
def test_the_description_states_type_and_form(system: str, name: str) -> None:
    fact = {"linux": fact_pages.LINUX_FACTS, "windows": fact_pages.WINDOWS_FACTS}[system][name]
    parser = getattr(fact, "parser", type(fact).parse)
    returned: Any = get_type_hints(getattr(parser, "func", parser))["return"]  # func: of a partial
    text = fact.describe_value()
    if get_origin(returned) in (list, dict) or returned in TYPES:
        assert re.match(TYPES[get_origin(returned) or returned], text), text
    elif NoneType in get_args(returned):  # as of preshutdown-timeout
        (known,) = set(get_args(returned)) - {NoneType}
        assert re.match(TYPES[get_origin(known) or known], text), text
        assert "null" in text
    else:  # a union, as of nft-rules
        assert {bool, dict} == {get_origin(member) or member for member in get_args(returned)}
        assert re.match("False without that (table|qdisc), else the mapping", text), text
