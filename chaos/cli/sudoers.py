"""``nodefall sudoers``: the sudo rules that experiments need on hosts."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.complete import complete_experiment_file
from chaos.cli.experiment_argument import ExperimentPath
from chaos.cli.inventory_option import inventory_option
from chaos.cli.output import echo
from chaos.core.errors import UsageError

if TYPE_CHECKING:
    from chaos.core.experiment import Experiment
    from chaos.core.inventory import Inventory

_LOGIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")
_ROOT = (
    "This is equivalent to root: steps wait on the host in `sudo -n -- sh -c ...`, so that sudo is done before the",
    "fault, and undo sends arbitrary commands. Grant it to a dedicated login with a dedicated key.",
)
EPILOG = """\b
Examples:
  nodefall sudoers experiments/*.yaml --inventory hosts/staging.yaml
  nodefall sudoers my.yaml -i hosts/staging.yaml > nodefall && visudo -cf nodefall
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, required=True, shell_complete=complete_experiment_file, type=ExperimentPath())
@inventory_option("For the login users of its hosts; no cluster is contacted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a sudoers file.")
def command(experiments: tuple[Path, ...], inventory: str | None, as_json: bool) -> None:
    """Print the sudo rules that EXPERIMENTS need on the hosts of an inventory, as a file for /etc/sudoers.d.

    A rule is always equivalent to root, as the file explains. Experiments that only use the API need no rule.
    """
    from chaos.app.wiring.connect import inventory_path
    from chaos.documents.inventory import load_inventory

    plugins = plugins_by_experiment(experiments)
    users = _users(load_inventory(inventory_path(inventory)))
    if as_json:
        rules = [{"user": user, "hosts": hosts} for user, hosts in users.items()] if plugins else []
        click.echo(json.dumps({"rules": rules, "amountsToRoot": bool(rules), "because": plugins}))
        return
    echo(*_lines(plugins, users))


def plugins_by_experiment(experiments: Iterable[Path]) -> dict[str, list[str]]:
    """The actions and assertions that use hosts, of each experiment that has some. Raises BadInput."""
    from chaos.api import load

    loaded = (load(path).experiment for path in experiments)
    found = ((experiment.metadata.name, _host_plugins(experiment)) for experiment in loaded)
    return {name: plugins for name, plugins in found if plugins}


def _host_plugins(experiment: Experiment) -> list[str]:
    """The actions and assertions that use hosts."""
    from chaos.core.assertion import HostFactAssertion

    bound = (each.bound for each in experiment.spec.expectations)
    found = {each.assertion.name for each in bound if each and isinstance(each.assertion, HostFactAssertion)}
    found |= {step.action for step in experiment.spec.method if step.bound.action.on_host}
    return sorted(found)


def _users(inventory: Inventory) -> dict[str, list[str]]:
    """The hosts by the login that needs sudo there. Raises UsageError for a login that sudoers(5) cannot express."""
    from chaos.engine.connection import login
    from chaos.machines.driver import HostContext, transport_of
    from chaos.machines.transports.settings import LocalUser

    found: dict[str, list[str]] = {}
    if inventory.lab:
        return found  # its hosts are simulated
    for key in inventory.hosts or ("every node",):
        context = HostContext(inventory, key, key, LocalUser(login(), Path.home()))
        user = transport_of(context).sudo_user(context)
        if not user:
            continue
        if not _LOGIN.fullmatch(user):
            raise UsageError(f"{key}: sudoers cannot express the login {user!r}")
        found.setdefault(user, []).append(key)
    return found


def _lines(plugins: Mapping[str, list[str]], users: Mapping[str, list[str]]) -> Iterator[str]:
    """The lines of a sudoers file."""
    if not plugins:
        yield "# No sudo is needed: these experiments use no host."
        return
    for experiment, names in plugins.items():
        yield f"# {experiment}: {', '.join(names)}"
    if not users:
        yield "# No rule is needed: hosts are reached as root, or through a container engine, or are simulated."
        return
    yield from (f"# {line}" for line in _ROOT)
    for user, hosts in users.items():
        yield f"# on {', '.join(hosts)}"
        yield f"{user} ALL=(root) NOPASSWD: ALL"
