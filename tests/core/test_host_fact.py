"""Facts that are declared as functions."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from chaos.core.command import HostCommand
from chaos.core.fact import Known, host_fact


class Params(BaseModel):
    unit: str = "a"


@host_fact("plain", "a word", HostCommand(("echo", "x")), form="x")
def plain(stdout: str, exit_code: int) -> str:
    """Text: ``x``, as
    it is printed.
    """
    return f"{stdout}{exit_code}"


def _command(known: Known, options: Params) -> HostCommand:
    return HostCommand((known["tool"], options.unit))


@host_fact(
    "bound", "", _command, needs=lambda options: ("tool", options.unit if options else ""), params=Params, form="on|off"
)
def bound(stdout: str, _exit_code: int, options: Params) -> str:
    """Text."""
    return f"{stdout} of {options.unit}"


def test_a_fact_without_parameters() -> None:
    assert (plain.name, plain.summary, plain.needs, plain.params) == ("plain", "a word", (), None)
    assert plain.command_for({}) == plain.command == HostCommand(("echo", "x"))
    assert plain.parse("x", 1) == "x1"
    for text in ("", "x\n", "y", "x x", "\x1b[0mx", "x\ufffd"):
        with pytest.raises(ValueError, match="cannot parse the output"):
            plain.parse(text, 0)
    assert plain.describe_value() == "Text: `x`, as it is printed."


def test_command_parser_and_needs_get_the_parameters() -> None:
    fact = bound.bind({"unit": "b"})
    assert (bound.needs, fact.needs) == (("tool", ""), ("tool", "b"))
    assert fact.command_for({"tool": "show"}).argv == ("show", "b")
    assert fact.parse("on", 0) == "on of b"


def test_a_description_of_its_own_replaces_that_of_a_shared_parser() -> None:
    shared = host_fact("other", "", HostCommand(("true",)), value="Number.")(plain.parse)
    assert shared.describe_value() == "Number."
