"""``nodefall rbac``: the least rights on a cluster that experiments need."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.model.errors import UsageError

if TYPE_CHECKING:
    from chaos.model.permission import Permission

_KINDS = {"user": "User", "group": "Group", "serviceaccount": "ServiceAccount"}
_OPTIONAL = """\
# Optional: what doctor, plan and run look at besides (admission webhooks, health checks of machines and nodes). Where
# they may not, they say what was not looked at. Take the "# " away to grant it:
"""
EPILOG = """\b
Examples:
  nodefall rbac experiments/*.yaml --subject serviceaccount:chaos/nodefall | kubectl apply -f -
  nodefall rbac my.yaml --inventory hosts/staging.yaml --subject user:chaos
  nodefall rbac my.yaml --json
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--subject", default="user:nodefall", show_default=True, help="user:, group: or serviceaccount:NAMESPACE/."
)
@click.option("--name", default="nodefall", show_default=True, help="Of the roles and bindings.")
@click.option("--inventory", "-i", help="For its cluster.namespace and allowNodeProxy; no cluster is asked.")
@click.option("--json", "as_json", is_flag=True, help="Print the rights as one JSON object instead of roles.")
def command(experiments: tuple[Path, ...], subject: str, name: str, inventory: str | None, as_json: bool) -> None:
    """Print the roles with exactly the rights that EXPERIMENTS need together.

    A run with one of them missing is refused before anything is touched. What doctor, plan and run look at besides, if
    they may, is a role of its own, commented out.
    """
    from chaos.api import load
    from chaos.app.load import required_permissions
    from chaos.app.registry import load_registry
    from chaos.load.inventory import load_inventory
    from chaos.load.yaml_dump import dump
    from chaos.plan.permissions import describe_risk, permissions_to_list, role_manifests
    from chaos.preflight.observations import LISTS

    bound = _subject(subject)
    cluster = load_inventory(Path(inventory)).cluster if inventory else None
    known = load_registry()
    rights: set[Permission] = set()
    for path in experiments:
        rights.update(required_permissions(load(path), known, cluster))
    warnings = sorted({why for right in rights if (why := describe_risk(right))})
    for why in warnings:
        click.echo(f"warning: {why}", err=True)
    optional = permissions_to_list(rights, LISTS)
    if as_json:
        told = {"rights": [_row(right) for right in sorted(rights)], "warnings": warnings}
        click.echo(json.dumps(told | {"optional": [_row(right) for right in optional]}))
    else:
        click.echo(dump(role_manifests(rights, name, bound)), nl=False)
        click.echo(_OPTIONAL + _comment_out(dump(role_manifests(optional, f"{name}-doctor", bound))), nl=False)


def _subject(text: str) -> dict[str, str]:
    kind, colon, name = text.partition(":")
    if kind not in _KINDS or not colon or not name:
        raise UsageError(f"--subject {text!r}: write user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME")
    if kind != "serviceaccount":
        return {"apiGroup": "rbac.authorization.k8s.io", "kind": _KINDS[kind], "name": name}
    namespace, slash, account = name.partition("/")
    if not slash or not namespace or not account:
        raise UsageError(f"--subject {text!r}: a service account is written serviceaccount:NAMESPACE/NAME")
    return {"kind": _KINDS[kind], "namespace": namespace, "name": account}


def _comment_out(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


def _row(right: Permission) -> dict[str, str]:
    return {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "namespace": right.namespace,
        "name": right.name,
    }
