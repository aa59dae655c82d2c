"""From the options of ``nodefall new``, and answers on a terminal, to files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from chaos.cli.output import echo, write_trusted
from chaos.cli.reference.validate import schema_text
from chaos.cli.setup.new_faults import MENU, WORKLOAD, expectation_keys, suggestions
from chaos.cli.setup.new_skeleton import SAMPLE_WORKLOAD, SCHEMA_LINE, Request, skeleton
from chaos.cli.setup.new_sources import experiment_of, workloads_of
from chaos.core.errors import UsageError
from chaos.core.field_types import NAME
from chaos.core.text import shell_word
from chaos.engine.registry import load_registry

_SCHEMA = "nodefall.schema.json"
_MAX_NAME = 63  # characters, as of a label's value
_SAMPLE = "sample"
_NAMED = 5  # workloads in a hint
READY_MADE = "Ten experiments are ready to run: nodefall list. This command writes your own."


@dataclass(frozen=True, slots=True)
class NewOptions:
    """The options of the command. ``namespace``: of pods that exist, None to apply a workload.

    ``owner``: a workload in the namespace, as Kind/name. ``inventory``: of the cluster that is asked for workloads;
    ``from_``: a stored run, whose experiment is written again.
    """

    file: Path | None
    actions: tuple[str, ...]
    expectations: tuple[str, ...]
    workload: Path | None
    namespace: str | None
    title: str
    force: bool
    owner: str = ""
    inventory: str | None = None
    from_: str = ""
    reports: Path = Path("reports")


def list_choices() -> None:
    """Print the actions and assertions with their summaries."""
    registry = load_registry()
    echo(READY_MADE)
    formatter = click.HelpFormatter(width=120, max_width=120)
    for title, plugins in (("--action", registry.actions), ("--expect", registry.assertions)):
        with formatter.section(title):
            formatter.write_dl([(name, plugins[name].summary) for name in sorted(plugins)], col_max=60)
    click.echo(formatter.getvalue(), nl=False)


def create(options: NewOptions) -> None:
    """Write the experiment, and its workload and schema if they are missing; print what to do next.

    Raises UsageError for unknown names, options that exclude each other, and files that exist.
    """
    if options.from_:
        _write_again(options)
        return
    _check(options)
    if options.inventory:
        options = _of_cluster(options, options.inventory)
    if not options.actions:
        options = _complete_by_answers(options)
    expectations = options.expectations or suggestions(options.actions[0], options.owner.partition("/")[0])
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
        owner=options.owner,
    )
    texts = {file: skeleton(request)} | ({sample: SAMPLE_WORKLOAD} if sample else {})
    _write(file.with_name(_SCHEMA), texts, options.force)
    _say_next(file, options.inventory)


def _write_again(options: NewOptions) -> None:
    """The experiment of a stored run, under the name of the new file."""
    others = (options.actions, options.expectations, options.workload, options.namespace, options.inventory)
    if any((*others, options.owner, options.title)):
        raise UsageError("--from excludes what makes a new experiment", hint="give FILE, --reports and --force only")
    if not options.file:
        raise UsageError("--from needs FILE", hint="name the file to write: its name is the name of the experiment")
    text = experiment_of(options.reports, options.from_, _name(options.file))
    _write(
        options.file.with_name(_SCHEMA), {options.file: f"{SCHEMA_LINE.format(schema=_SCHEMA)}\n{text}"}, options.force
    )
    _say_next(options.file)


def _of_cluster(options: NewOptions, inventory: str) -> NewOptions:
    """The options with a workload of the cluster: the one that is named, or that a person chooses."""
    if options.workload:
        raise UsageError("--inventory and --workload exclude each other", hint="a workload is not in the cluster yet")
    found = workloads_of(inventory, options.namespace)
    if options.owner:
        if options.owner not in (each.owner for each in found):
            near = ", ".join(each.owner for each in found[:_NAMED])
            raise UsageError(f"--owner: no {options.owner} with pods in {options.namespace}", hint=f"there is {near}")
        return options
    if not _on_terminal():
        raise UsageError("--owner is missing, and there is no terminal to ask", hint="give --namespace and --owner")
    names = [f"{each.namespace}/{each.owner}" for each in found]
    _menu("Which workload?", [(name, each.words) for name, each in zip(names, found, strict=True)])
    chosen = found[names.index(_prompt("number, or NAMESPACE/KIND/NAME", "1", _one_of(names, dict.fromkeys(names))))]
    return replace(options, namespace=chosen.namespace, owner=chosen.owner)


def _check(options: NewOptions) -> None:
    registry = load_registry()
    if options.workload and options.namespace:
        raise UsageError(
            "--workload and --namespace exclude each other", hint="a workload has a namespace made for the run"
        )
    if options.namespace and not re.fullmatch(NAME, options.namespace):
        raise UsageError(
            f"--namespace: {options.namespace!r} is not a valid namespace name", hint="kubectl get namespaces"
        )
    if options.workload and not options.workload.is_file():
        raise UsageError(
            f"--workload: no file {options.workload}", hint="give a manifest, or leave it out for a sample"
        )
    _check_names("action", options.actions, registry.actions)
    _check_names("expect", options.expectations, registry.assertions)
    if options.owner and not re.fullmatch(r"(Deployment|StatefulSet|DaemonSet)/[a-z0-9][-a-z0-9.]*", options.owner):
        raise UsageError(f"--owner: {options.owner!r} is not a workload", hint="write it like StatefulSet/db")
    if options.owner and not options.namespace:
        raise UsageError("--owner needs --namespace", hint="name the namespace in which the workload is")
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
    answers = ask(expects=not options.expectations, workload=with_workload, kind=options.owner.partition("/")[0])
    return replace(
        options,
        actions=(answers.action,),
        expectations=options.expectations or answers.expectations,
        workload=options.workload or answers.workload,
        namespace=options.namespace or answers.namespace,
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


def _say_next(file: Path, inventory: str | None = None) -> None:
    given = shell_word(inventory) if inventory else "INVENTORY"
    echo(
        "next:",
        f"  nodefall validate {shell_word(file)}",
        f"  nodefall plan {shell_word(file)} -i {given}",
        f"  nodefall run {shell_word(file)} -i {given}",
    )
    if not inventory:
        echo("INVENTORY: what nodefall init writes; for a simulated cluster what nodefall lab up --out lab.json writes")


@dataclass(frozen=True, slots=True)
class Answers:
    """``expectations`` is empty, and ``workload`` and ``namespace`` are None, where nothing was asked."""

    action: str
    expectations: tuple[str, ...] = ()
    workload: Path | None = None
    namespace: str | None = None


def ask(*, expects: bool, workload: bool, kind: str = "") -> Answers:
    """Ask on the terminal; an answer that is not understood is asked for again. Raises click.Abort at its end."""
    registry = load_registry()
    click.echo(READY_MADE, err=True)
    faults = [(name, text) for name, text in MENU.items() if name in registry.actions]
    _menu("What fails?", faults)
    action = _prompt(
        "number, or a name of nodefall list actions", "1", _one_of([n for n, _ in faults], registry.actions)
    )
    expectations: tuple[str, ...] = ()
    if expects:
        likely = suggestions(action, kind)
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
            raise click.BadParameter(f"{name!r} is not a valid namespace name")
        return None, name
    if not Path(text).is_file():
        raise click.BadParameter(f"no file {text}")
    return Path(text), None
