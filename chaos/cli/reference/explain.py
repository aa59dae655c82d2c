"""What actions, assertions, facts, time words and bundled experiments do: a list, and an explanation of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import click

from chaos.cli.complete import bundled_names
from chaos.cli.output import print_document
from chaos.cli.time_words import TIME_WORDS, describe, worked_lines
from chaos.core.action import AnyAction
from chaos.core.assertion import Assertion
from chaos.core.duration import FACTS, POD_FACTS
from chaos.core.errors import UsageError
from chaos.core.fact import HostFact, current_fact
from chaos.core.files import bundled_path
from chaos.core.outside import origins
from chaos.core.registry import Group
from chaos.documents.bundled import read_summaries
from chaos.documents.experiment import load_experiment
from chaos.documents.reference import DOCUMENTS, FieldRow, fields_of, parameters
from chaos.documents.statements import load_statements
from chaos.engine.registry import load_facts, load_registry, load_windows_facts

# Key in JSON and title of each section.
_TITLES = {
    "experiments": "experiments to start with (nodefall list experiments shows all)",
    "actions": "actions",
    "assertions": "assertions",
    "facts": "facts in bounds, as within: kubelet.shutdownGracePeriod + 10s",
    "host-facts": "facts of hosts, which actions read",
}
_CONFORMANCE = "conformanceSet"
_MAX_FIELDS = 6  # fields that are explained if a key has several meanings


def list_names(kind: str | None, as_json: bool) -> None:
    """List experiments, actions, assertions, facts for time bounds and facts of hosts; see the command's help."""
    more = {"facts": ["host-facts"], "experiments": [_CONFORMANCE]}
    kinds = [kind, *more.get(kind, ())] if kind else list(_TITLES)
    names = {each: _summaries(each) for each in kinds}
    if as_json:
        print_document(names)
        return
    formatter = click.HelpFormatter(width=120, max_width=120)
    for each, summaries in names.items():
        with formatter.section(
            _TITLES.get(each, "conformance set, which tests statements of the Kubernetes documentation")
        ):
            systems = _systems(each)
            ordered = summaries if each == "experiments" else dict(sorted(summaries.items()))
            owners = _owners(each)
            rows = [(name, summary + systems.get(name, "") + owners.get(name, "")) for name, summary in ordered.items()]
            formatter.write_dl(rows, col_max=60)
    click.echo(formatter.getvalue(), nl=False)


def _summaries(kind: str) -> dict[str, str]:
    if kind in ("experiments", _CONFORMANCE):
        questions, others = read_summaries(bundled_path(f"experiments/{name}.yaml") for name in bundled_names())
        return questions if kind == "experiments" else others
    if kind == "facts":
        return {**FACTS, **POD_FACTS}
    if kind == "host-facts":
        return {name: fact.summary for name, fact in ({**load_windows_facts(), **load_facts()}).items()}
    found = load_registry()
    plugins = found.actions if kind == "actions" else found.assertions
    return {name: plugin.summary for name, plugin in plugins.items()}


_GROUPS = {
    "actions": (Group.ACTIONS, Group.WINDOWS_ACTIONS),
    "assertions": (Group.ASSERTIONS,),
    "host-facts": (Group.FACTS, Group.WINDOWS_FACTS),
}


def _owners(kind: str) -> dict[str, str]:
    """`` (nodefall-acme 0.1.0)`` by name: the distributions of plug-ins."""
    found = [row for group in _GROUPS.get(kind, ()) for row in origins(group).items()]
    return {name: f" ({origin.owner})" for name, origin in reversed(found)}


def _from(name: str, *groups: Group) -> dict[str, str]:
    """The distribution that a plug-in is from; nothing for a built-in one."""
    found = [origin for group in groups if (origin := origins(group).get(name))]
    return {"from": found[0].owner} if found else {}


def _systems(kind: str) -> dict[str, str]:
    """`` (Linux, Windows)`` by name: operating systems of hosts that an action or fact of hosts has forms for."""
    found = load_registry()
    if kind == "actions":
        systems = {name: found.systems_of(name) for name, action in found.actions.items() if action.on_host}
    elif kind == "host-facts":
        forms = {"linux": load_facts(), "windows": load_windows_facts()}
        names = {name for facts in forms.values() for name in facts}
        systems = {name: frozenset(system for system in forms if name in forms[system]) for name in names}
    else:
        return {}
    return {name: f" ({', '.join(map(str.capitalize, sorted(each)))})" for name, each in systems.items()}


def explain(name: str, as_json: bool) -> None:
    """Explain an action, an assertion, a fact, a time word, a bundled experiment or a field of a document."""
    first, *others = lookup_all(name)
    if as_json:
        print_document(first | ({"also": others} if others else {}))
        return
    _echo(first)
    for entry in others:  # as clock-skew, an action and a fact
        click.echo()
        _echo(entry)


def _echo(entry: dict[str, Any]) -> None:
    click.echo(f"{entry['name']} ({entry['kind']}): {entry['summary']}")
    for parameter in entry.get("with", ()):
        click.echo(f"  {parameter['key']}: {parameter['type']}{parameter_details(parameter)}")
    for label in (
        "description",
        "type",
        "default",
        "examples",
        "verdict",
        "alias of",
        "value",
        "reference",
        "needs",
        "systems",
        "from",
        "undo",
        "proofs",
        "example",
    ):
        if value := entry.get(label):
            click.echo(f"{label}: {value if isinstance(value, str) else '; '.join(value)}")
    for statement in entry.get("statements", ()):
        click.echo(f"statement {statement['id']}: {statement['says']}\n  {statement['url']}")
        for name in statement["expectations"]:
            click.echo(f"  tested by: {name}")
    if worked := entry.get("worked"):
        click.echo("worked out, in seconds of the example:")
        click.echo("\n".join(worked_lines(worked)))


def parameter_details(parameter: dict[str, Any]) -> str:
    """``, required`` or the default of a parameter, and its description."""
    default = ", required" if parameter["required"] else f", default {json.dumps(parameter['default'])}"
    return default + (f" - {parameter['description']}" if parameter["description"] else "")


def lookup(name: str) -> dict[str, Any]:
    """The first of :func:`lookup_all`. Raises UsageError."""
    return lookup_all(name)[0]


def lookup_all(name: str) -> list[dict[str, Any]]:
    """The documentation of what has this name, as JSON: a plug-in, a time word, an experiment, else a field.

    Raises UsageError.

    Names are unique within their kind only. A fact of hosts is also found by a reference with parameters.
    """
    found, facts = load_registry(), {**FACTS, **POD_FACTS}
    forms = {"linux": load_facts(), "windows": load_windows_facts()}
    host_facts = {**forms["windows"], **forms["linux"]}
    entries = []
    if name in found.actions:
        entries.append(_action(found.actions[name], found.systems_of(name)) | _from(name, Group.ACTIONS))
    if name in found.assertions:
        entries.append(_assertion(found.assertions[name]) | _from(name, Group.ASSERTIONS))
    if name in facts:
        entries.append({"kind": "fact", "name": name, "summary": facts[name]})
    if host_fact := host_facts.get(current_fact(name).partition("?")[0]):
        systems = [system for system, of_system in forms.items() if host_fact.name in of_system]
        of = _from(host_fact.name, Group.FACTS, Group.WINDOWS_FACTS)
        entries.append(_host_fact(host_fact) | {"systems": systems} | of)
    if name in TIME_WORDS:
        entries.append(describe(name))
    if name in bundled_names():
        entries.append(_experiment(name))
    if entries:
        return entries
    fields = [row for document in DOCUMENTS for row in fields_of(document)]
    if entries := _fields(name, fields):
        return entries
    plugins = [*found.actions, *found.assertions, *facts, *host_facts, *TIME_WORDS, *bundled_names()]
    keys = [row.plain_path for row in fields] if "." in name else [row.key for row in fields]
    near = get_close_matches(name, keys if "." in name else [*plugins, *keys], 1, 0.75)
    raise UsageError(
        f"unknown action, assertion, fact, time word, experiment or field {name!r}",
        hint=f"did you mean {near[0]!r}?" if near else "list the names with nodefall list",
    )


def _fields(name: str, rows: Sequence[FieldRow]) -> list[dict[str, Any]]:
    """The fields of documents with this path or the end of one, the shortest paths first."""
    wanted = name.removeprefix(".")
    found = [row for row in rows if row.plain_path == wanted] or [
        row for row in rows if row.plain_path.endswith(f".{wanted}")
    ]
    nearest = sorted(found, key=lambda row: (row.document != "Experiment", row.path.count(".")))[:_MAX_FIELDS]
    return [row.describe([each for each in rows if each.parent == (row.document, row.path)]) for row in nearest]


def _experiment(name: str) -> dict[str, Any]:
    """A bundled experiment, with the statements of the documentation that it tests."""
    experiment = load_experiment(bundled_path(f"experiments/{name}.yaml"), load_registry())
    statements = load_statements(bundled_path("experiments/statements.yaml")).statements
    return {
        "kind": "experiment",
        "name": name,
        "summary": experiment.spec.title,
        "description": experiment.spec.description,
        "verdict": experiment.metadata.annotations.get("nodefall.dev/verdict", "held"),
        "statements": [
            {"id": each.id, "says": each.says, "url": each.url, "expectations": each.tested_by[name]}
            for each in statements
            if name in each.tested_by
        ],
    }


def _action(action: AnyAction, systems: frozenset[str]) -> dict[str, Any]:
    """``systems``: operating systems of hosts that it has a form for; none are named if it only uses the API."""
    proofs = [proof.name + (" (weak)" if proof.weak else "") for proof in action.proofs]
    on = {"systems": sorted(systems)} if action.on_host else {}
    return {**_plugin("action", action), **on, "undo": str(action.undo_kind), "proofs": proofs}


def _assertion(assertion: Assertion) -> dict[str, Any]:
    alias = {"alias of": expands} if (expands := getattr(assertion, "expands_to", "")) else {}
    return {**_plugin("assertion", assertion), **alias, "needs": assertion.needs}


def _host_fact(fact: HostFact) -> dict[str, Any]:
    given = parameters(fact.params) if fact.params else []
    query = "&".join(f"{parameter['key']}={parameter['key'].upper()}" for parameter in given)
    return {
        "kind": "host fact",
        "name": fact.name,
        "summary": fact.summary,
        "with": given,
        "value": fact.describe_value(),
        "reference": f"{fact.name}?{query}" if query else fact.name,
        "needs": list(fact.needs),
    }


def _plugin(kind: str, plugin: AnyAction | Assertion) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": plugin.name,
        "summary": plugin.summary,
        "with": parameters(plugin.params),
        "example": plugin.example.strip(),
    }
