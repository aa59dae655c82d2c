"""``nodefall sudoers``: what experiments need of sudo on the hosts, said as it is."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.output import echo
from chaos.model.errors import UsageError

if TYPE_CHECKING:
    from chaos.model.experiment import Experiment
    from chaos.model.inventory import Inventory
    from chaos.model.registry import PluginRegistry

_LOGIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")
_ROOT = (
    "This amounts to root: steps wait on the host in `sudo -n -- sh -c ...`, so that sudo's work is done before the",
    "fault, and undo sends what the fault left to undo. Give it to a login of its own, with a key of its own.",
)
EPILOG = """\b
Examples:
  nodefall sudoers experiments/*.yaml --inventory hosts/staging.yaml
  nodefall sudoers my.yaml -i hosts/staging.yaml > nodefall && visudo -cf nodefall
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--inventory", "-i", help="For the login users of its hosts; no cluster is asked.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a sudoers file.")
def command(experiments: tuple[Path, ...], inventory: str | None, as_json: bool) -> None:
    """Print the sudo rules that EXPERIMENTS need on the hosts of an inventory, as a file for /etc/sudoers.d.

    There is no small rule: where hosts are touched, it amounts to root, and the file says so. Experiments that act
    through the API alone need no rule at all.
    """
    from chaos.api import load
    from chaos.app.connect import inventory_path
    from chaos.app.registry import load_registry
    from chaos.load.inventory import load_inventory

    known = load_registry()
    wanting = {}
    for path in experiments:
        loaded = load(path)
        if asking := _host_plugins(loaded.experiment, known):
            wanting[loaded.experiment.metadata.name] = asking
    users = _users(load_inventory(inventory_path(inventory)))
    if as_json:
        told = [{"user": user, "hosts": hosts} for user, hosts in users.items()] if wanting else []
        click.echo(json.dumps({"rules": told, "amountsToRoot": bool(told), "because": wanting}))
        return
    echo(*_lines(wanting, users))


def _host_plugins(experiment: Experiment, catalogue: PluginRegistry) -> list[str]:
    """The actions and assertions that ask hosts something."""
    from chaos.model.assertion import HostFactAssertion

    spec = experiment.spec
    asked = (e.assert_ for e in (*spec.steady_state, *spec.hypothesis, *spec.abort) if e.assert_)
    found = {name for name in asked if isinstance(catalogue.assertions[name], HostFactAssertion)}
    found |= {step.action for step in spec.method if catalogue.actions[step.action].on_host}
    return sorted(found)


def _users(inventory: Inventory) -> dict[str, list[str]]:
    """The hosts by the login that needs sudo there. Raises UsageError for one that no sudoers file can name."""
    from chaos.app.connect import login
    from chaos.hosts.transports.settings import LocalUser, host_settings

    found: dict[str, list[str]] = {}
    if inventory.lab:
        return found  # it has hosts of its own
    for key in inventory.hosts or ("every node",):
        transport = inventory.hosts[key].transport if key in inventory.hosts else None
        settings = host_settings(inventory, key, LocalUser(login(), Path.home()))
        if (transport or inventory.defaults.transport) == "docker" or not settings.sudo_prefix:
            continue
        if not _LOGIN.fullmatch(settings.user):
            raise UsageError(f"{key}: no sudo rule can be written for the login {settings.user!r}")
        found.setdefault(settings.user, []).append(key)
    return found


def _lines(wanting: Mapping[str, list[str]], users: Mapping[str, list[str]]) -> Iterator[str]:
    """A sudoers file."""
    if not wanting:
        yield "# No sudo is needed: these experiments ask no host anything."
        return
    for experiment, names in wanting.items():
        yield f"# {experiment}: {', '.join(names)}"
    if not users:
        yield "# No rule is needed: hosts are reached as root, or through a container engine, or are simulated."
        return
    yield from (f"# {line}" for line in _ROOT)
    for user, hosts in users.items():
        yield f"# on {', '.join(hosts)}"
        yield f"{user} ALL=(root) NOPASSWD: ALL"
