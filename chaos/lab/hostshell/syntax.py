"""Syntax of the simulated hosts' shell: lists of commands, ``while``, and what is rejected.

Options as of the systemd tools: at any position, values after ``=`` or as the next word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\\\n|(?<![^\s;&|])\#[^\n]*)
    |(?P<redirect>[012]?(?:>>?|<)[ \t]*(?:/dev/null|/proc/sysrq-trigger|&[12])|>>[ \t]*"\$\d(?:\.\w+)?")
    |(?P<operator>&&|\|\||[;&\n])
    |(?P<word>(?:\$\([^()]*\)|'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;&|()<>'"\\`])+)""",
    re.VERBOSE | re.DOTALL,
)
_LOOP = re.compile(r"while\s+(.*?);\s*do\s+(.*?);\s*done(?=[\s;&|]|\Z)", re.DOTALL)
_RESERVED = frozenset(
    ["if", "then", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "{", "}", "!"]
)


class ShellSyntaxError(ValueError):
    """The script is invalid, or needs a feature that is not simulated."""


@dataclass(slots=True)
class SimpleCommand:
    """One command, with the operator before it; ``words`` are still quoted. ``loop``: condition and body of while."""

    operator: str
    words: list[str] = field(default_factory=list)
    redirects: list[str] = field(default_factory=list)
    background: bool = False
    loop: tuple[list[SimpleCommand], list[SimpleCommand]] | None = None


def parse(script: str) -> list[SimpleCommand]:
    """Parse the commands of a script. Raises ShellSyntaxError."""
    commands: list[SimpleCommand] = []
    current, position = SimpleCommand(";"), 0
    while position < len(script):
        if not current.words and (loop := _LOOP.match(script, position)):
            position, current.words, current.loop = loop.end(), ["while"], (_parse_list(loop[1]), _parse_list(loop[2]))
            continue
        match = _TOKEN.match(script, position)
        if not match:
            raise ShellSyntaxError(f"{script[position]!r} is not simulated")
        position = match.end()
        if match.lastgroup == "operator":
            current = _end_command(commands, current, match[0])
        else:
            _add(current, match.lastgroup, match[0])
    if current.words:
        commands.append(current)
    elif current.operator != ";":
        raise ShellSyntaxError("end of file unexpected")
    return commands


def _add(command: SimpleCommand, kind: str | None, text: str) -> None:
    """Add a word or a redirection; nothing for a space."""
    if kind == "word":
        if command.loop or (not command.words and text in _RESERVED):
            raise ShellSyntaxError(f"{text!r} is not simulated")
        command.words.append(text)
    elif kind == "redirect":
        if command.loop:
            raise ShellSyntaxError("a loop with a redirection is not simulated")
        command.redirects.append(text.replace(" ", ""))


def _end_command(commands: list[SimpleCommand], current: SimpleCommand, operator: str) -> SimpleCommand:
    """End the current command, and return the next one."""
    if current.words:
        commands.append(current)
    elif operator != "\n":
        raise ShellSyntaxError(f'"{operator}" unexpected')
    current.background = operator == "&"
    if current.background and current.operator != ";":
        raise ShellSyntaxError("a list in the background is not simulated")
    return SimpleCommand(";" if operator in "\n&" else operator) if current.words else current


def _parse_list(script: str) -> list[SimpleCommand]:
    """Condition or body of a loop, which only its condition ends. Raises ShellSyntaxError."""
    commands = parse(script)
    for command in commands:
        if command.background or (command.words and command.words[0] in ("exit", "exec", "break", "continue")):
            raise ShellSyntaxError(f"{command.words[0]!r} in a loop is not simulated")
    return commands


class UnknownOptionError(ValueError):
    """An invalid option; the text is getopt's, without the name of the program."""


def split_options(
    words: Sequence[str], flags: Mapping[str, str], valued: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Split words into options by canonical name, and the rest. Raises UnknownOptionError.

    ``flags`` and ``valued`` map accepted spellings (``--property``, ``-p``) to canonical names. A flag has one empty
    value per use.
    """
    result: dict[str, list[str]] = {}
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return result, rest + queue
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif name.startswith("--"):
            _take_long(name, value if equals else None, queue, (flags, valued), result)
        elif word[:2] in valued:
            result.setdefault(valued[word[:2]], []).append(word[2:] or _next(word, queue))
        else:
            for letter in word[1:]:
                if f"-{letter}" not in flags:
                    raise UnknownOptionError(f"invalid option -- '{letter}'")
                result.setdefault(flags[f"-{letter}"], []).append("")
    return result, rest


def _take_long(
    name: str,
    value: str | None,
    queue: list[str],
    known: tuple[Mapping[str, str], Mapping[str, str]],
    result: dict[str, list[str]],
) -> None:
    flags, valued = known
    if name in flags:
        result.setdefault(flags[name], []).append(value or "")
    elif name in valued:
        result.setdefault(valued[name], []).append(value if value is not None else _next(name, queue))
    else:
        raise UnknownOptionError(f"unrecognized option '{name}'")


def _next(name: str, queue: list[str]) -> str:
    if not queue:
        raise UnknownOptionError(f"option '{name}' requires an argument")
    return queue.pop(0)
