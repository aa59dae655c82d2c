"""What a CI service would take from a log as a command."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.text import is_ci, without_commands

# How runners find commands. GitHub: actions/runner, ActionCommand.cs (TryParseV2, TryParse). Azure: Command.cs, as
# TryParse with ##vso[, and ##[ for colors. TeamCity: a service message anywhere in a line.
GITHUB_V2 = re.compile(r"^\s*::\S.*", re.MULTILINE)
ANYWHERE = re.compile(r"##\[|##vso\[|##teamcity\[|::error|::warning|::add-mask|::set-output|::stop-commands")
TEXT = st.lists(st.sampled_from(["::", ":", "#", "##", "[", "vso[", "error", "x", " ", "\n", "\t", '"'])).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a ##[error] b", "a # #[error] b"),
        ("##vso[task.logissue]", "# #vso[task.logissue]"),
        ("x###[group]", "x## #[group]"),
        ("##teamcity[testFailed]", "# #teamcity[testFailed]"),
        ("::error file=a::b", ": :error file=a::b"),
        ("  ::anything::b", "  : :anything::b"),
        ("name ::warning::x", "name : :warning::x"),
        ("fine\n::error::x\n", "fine\n: :error::x\n"),
        ("fd00::1, std::vector, a # comment, ## heading [x]", "fd00::1, std::vector, a # comment, ## heading [x]"),
    ],
)
def test_table(text: str, shown: str) -> None:
    assert without_commands(text) == shown


@given(TEXT)
def test_no_line_has_a_command(text: str) -> None:
    shown = without_commands(text)
    assert not GITHUB_V2.search(shown)
    assert not ANYWHERE.search(shown)
    assert without_commands(shown) == shown


@given(st.lists(TEXT, min_size=1) | st.dictionaries(TEXT, TEXT, min_size=1))
def test_programs_read_the_same_json(document: object) -> None:
    for indent in (None, 2):
        shown = without_commands(json.dumps(document, indent=indent, ensure_ascii=False))
        assert json.loads(shown) == document
        assert not ANYWHERE.search(shown)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"CI": "true"}, True),
        ({"CI": "false"}, False),
        ({"TF_BUILD": "True"}, True),
        ({"GITHUB_ACTIONS": "true"}, True),
    ],
)
def test_services_are_known_by_their_variables(environ: dict[str, str], expected: bool) -> None:
    assert is_ci(environ) is expected
