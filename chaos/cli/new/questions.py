"""The questions of ``nodefall new``, on a terminal: what fails, what must hold, and for which pods."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from chaos.cli.new.faults import MENU, expectation_keys, suggestions
from chaos.core.field_types import NAME
from chaos.engine.registry import load_registry

_SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Answers:
    """``expectations`` is empty, and ``workload`` and ``namespace`` are None, where nothing was asked."""

    action: str
    expectations: tuple[str, ...] = ()
    workload: Path | None = None
    namespace: str | None = None


def ask(*, expects: bool, workload: bool) -> Answers:
    """Ask on the terminal; an answer that is not understood is asked for again. Raises click.Abort at its end."""
    registry = load_registry()
    faults = [(name, text) for name, text in MENU.items() if name in registry.actions]
    _menu("What fails?", faults)
    action = _prompt(
        "number, or a name of nodefall list actions", "1", _one_of([n for n, _ in faults], registry.actions)
    )
    expectations: tuple[str, ...] = ()
    if expects:
        likely = suggestions(action)
        _menu("What must hold?", [(name, _question(action, name)) for name in likely])
        default = ",".join(str(number) for number, _ in enumerate(likely, 1))
        hint = "numbers, or names of nodefall list assertions, with commas"
        expectations = _prompt(hint, default, _some_of(likely, registry.assertions))
    if not workload:
        return Answers(action, expectations)
    click.echo("For which pods?", err=True)
    path, namespace = _prompt("a manifest to apply, or namespace/NAME of pods that exist", _SAMPLE, _pods)
    return Answers(action, expectations, path, namespace)


def _menu(title: str, rows: Sequence[tuple[str, str]]) -> None:
    click.echo(title, err=True)
    width = max(len(name) for name, _ in rows)
    for number, (name, text) in enumerate(rows, 1):
        click.echo(f"  {number:>2}  {name:<{width}}  {text}", err=True)


def _question(action: str, assertion: str) -> str:
    return str(expectation_keys(action, assertion).get("name") or load_registry().assertions[assertion].summary)


def _prompt(text: str, default: str, parse: Callable[[str], Any]) -> Any:
    return click.prompt(text, default=default, value_proc=parse, err=True)


def _one_of(listed: Sequence[str], known: Mapping[str, Any]) -> Callable[[str], str]:
    """A parser of a number of the menu, or a name."""

    def parse(text: str) -> str:
        text = text.strip()
        if text.isdecimal() and 1 <= int(text) <= len(listed):
            return listed[int(text) - 1]
        if text in known:
            return text
        near = get_close_matches(text, known, 1, 0.5)
        raise click.BadParameter(f"{text!r} is not in the list" + (f"; did you mean {near[0]!r}?" if near else ""))

    return parse


def _some_of(listed: Sequence[str], known: Mapping[str, Any]) -> Callable[[str], tuple[str, ...]]:
    one = _one_of(listed, known)
    return lambda text: tuple(dict.fromkeys(one(part) for part in text.split(",")))


def _pods(text: str) -> tuple[Path | None, str | None]:
    """A manifest or a namespace; neither for the sample."""
    text = text.strip()
    if text == _SAMPLE:
        return None, None
    kind, slash, name = text.partition("/")
    if kind == "namespace" and slash:
        if not re.fullmatch(NAME, name):
            raise click.BadParameter(f"{name!r} is no name of a namespace")
        return None, name
    if not Path(text).is_file():
        raise click.BadParameter(f"no file {text}")
    return Path(text), None
