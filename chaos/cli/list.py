"""``nodefall list``."""

from __future__ import annotations

import json

import click

from chaos.cli.lazy import examples

# Key in JSON and title of each section.
_TITLES = {
    "actions": "actions",
    "assertions": "assertions",
    "facts": "facts in bounds, as within: kubelet.shutdownGracePeriod + 10s",
    "host-facts": "facts of hosts, which actions read",
}


@click.command(name="list", epilog=examples("nodefall list", "nodefall list actions", "nodefall list facts --json"))
@click.argument("kind", required=False, type=click.Choice(list(_TITLES)))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(kind: str | None, as_json: bool) -> None:
    """List actions, assertions, facts in bounds and facts of hosts; `list facts` has both kinds of facts."""
    kinds = ["facts", "host-facts"] if kind == "facts" else [kind] if kind else list(_TITLES)
    names = {each: _summaries(each) for each in kinds}
    if as_json:
        click.echo(json.dumps(names, indent=2))
        return
    formatter = click.HelpFormatter(width=120, max_width=120)
    for each, summaries in names.items():
        with formatter.section(_TITLES[each]):
            systems = _systems(each)
            rows = [(name, summary + systems.get(name, "")) for name, summary in sorted(summaries.items())]
            formatter.write_dl(rows, col_max=60)
    click.echo(formatter.getvalue(), nl=False)


def _summaries(kind: str) -> dict[str, str]:
    from chaos.core.duration import FACTS, POD_FACTS  # noqa: PLC0415
    from chaos.engine.registry import load_facts, load_registry, load_windows_facts  # noqa: PLC0415 - slow

    if kind == "facts":
        return {**FACTS, **POD_FACTS}
    if kind == "host-facts":
        return {name: fact.summary for name, fact in ({**load_windows_facts(), **load_facts()}).items()}
    found = load_registry()
    plugins = found.actions if kind == "actions" else found.assertions
    return {name: plugin.summary for name, plugin in plugins.items()}


def _systems(kind: str) -> dict[str, str]:
    """`` (Linux, Windows)`` by name: operating systems of hosts that an action or fact of hosts has forms for."""
    from chaos.engine.registry import load_facts, load_registry, load_windows_facts  # noqa: PLC0415 - slow

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
