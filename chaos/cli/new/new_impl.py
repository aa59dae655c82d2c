"""From the options of ``nodefall new``, and answers on a terminal, to files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from chaos.cli.new.faults import suggestions
from chaos.cli.new.questions import ask
from chaos.cli.new.skeleton import SAMPLE_WORKLOAD, WORKLOAD, Request, skeleton
from chaos.cli.output import echo, write_trusted
from chaos.cli.schema import schema_text
from chaos.core.errors import UsageError
from chaos.core.field_types import NAME
from chaos.engine.registry import load_registry

_SCHEMA = "nodefall.schema.json"
_MAX_NAME = 63  # characters, as of a label's value


@dataclass(frozen=True, slots=True)
class NewOptions:
    """The options of the command. ``namespace``: of pods that exist, None to apply a workload."""

    file: Path | None
    actions: tuple[str, ...]
    expectations: tuple[str, ...]
    workload: Path | None
    namespace: str | None
    title: str
    force: bool


def list_choices() -> None:
    """Print the actions and assertions with their summaries."""
    registry = load_registry()
    formatter = click.HelpFormatter(width=120, max_width=120)
    for title, plugins in (("--action", registry.actions), ("--expect", registry.assertions)):
        with formatter.section(title):
            formatter.write_dl([(name, plugins[name].summary) for name in sorted(plugins)], col_max=60)
    click.echo(formatter.getvalue(), nl=False)


def create(options: NewOptions) -> None:
    """Write the experiment, and its workload and schema if they are missing; print what to do next.

    Raises UsageError for unknown names, options that exclude each other, and files that exist.
    """
    _check(options)
    if not options.actions:
        options = _complete_by_answers(options)
    expectations = options.expectations or suggestions(options.actions[0])
    file = options.file or Path(f"{options.actions[0]}.yaml")
    name = _name(file)
    sample = None if options.workload or options.namespace else file.with_name(f"{name}-workload.yaml")
    workload = options.workload or sample
    request = Request(
        name,
        options.actions,
        expectations,
        workload=os.path.relpath(workload, file.parent) if workload else "",
        namespace=options.namespace or WORKLOAD,
        title=" ".join(options.title.split()),
        schema=_SCHEMA,
    )
    texts = {file: skeleton(request)} | ({sample: SAMPLE_WORKLOAD} if sample else {})
    _write(file.with_name(_SCHEMA), texts, options.force)
    _say_next(file)


def _check(options: NewOptions) -> None:
    if options.workload and options.namespace:
        raise UsageError(
            "--workload and --namespace exclude each other", hint="a workload has a namespace made for the run"
        )
    if options.namespace and not re.fullmatch(NAME, options.namespace):
        raise UsageError(f"--namespace: {options.namespace!r} is no name of a namespace", hint="kubectl get namespaces")
    if options.workload and not options.workload.is_file():
        raise UsageError(
            f"--workload: no file {options.workload}", hint="give a manifest, or leave it out for a sample"
        )
    registry = load_registry()
    _check_names("action", options.actions, registry.actions)
    _check_names("expect", options.expectations, registry.assertions)
    if not options.actions and not _on_terminal():
        raise UsageError("--action is missing, and there is no terminal to ask", hint="nodefall new --list")


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _check_names(option: str, names: Iterable[str], known: Mapping[str, Any]) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else "nodefall new --list"
            raise UsageError(f"--{option}: unknown name {name!r}", hint=hint)


def _complete_by_answers(options: NewOptions) -> NewOptions:
    """The options completed by a person's answers."""
    with_workload = options.workload is None and options.namespace is None
    answers = ask(expects=not options.expectations, workload=with_workload)
    return NewOptions(
        options.file,
        (answers.action,),
        options.expectations or answers.expectations,
        options.workload or answers.workload,
        options.namespace or answers.namespace,
        options.title,
        options.force,
    )


def _name(file: Path) -> str:
    """The file's name as the name of an experiment. Raises UsageError if it has no letter or digit."""
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")[:_MAX_NAME].strip("-")
    if not re.fullmatch(NAME, name):
        raise UsageError(f"{file} gives no name for the experiment", hint="use letters a to z, digits and hyphens")
    return name


def _write(schema: Path, texts: Mapping[Path, str], force: bool) -> None:
    existing = [str(path) for path in texts if path.exists()]
    if existing and not force:
        raise UsageError(f"not overwritten: {', '.join(existing)}", hint="give another FILE, or --force")
    for path, text in texts.items():
        write_trusted(path, text)
        echo(f"wrote {path}")
    if not schema.exists():
        write_trusted(schema, schema_text())
        echo(f"wrote {schema}, for editors")


def _say_next(file: Path) -> None:
    echo(
        "next:",
        f"  nodefall validate {file}",
        f"  nodefall plan {file} -i INVENTORY",
        f"  nodefall run {file} -i INVENTORY",
        "INVENTORY: what nodefall init writes; for a simulated cluster what nodefall lab up --out lab.json writes",
    )
