"""The least permissions that experiments need on a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from chaos.api import load
from chaos.app.day.document import day_permissions, load_game_day
from chaos.app.fleet.loading import fleet_permissions, load_fleet
from chaos.app.snapshot.take import snapshot_permissions
from chaos.core.errors import UsageError
from chaos.core.inventory import Cluster, Inventory
from chaos.core.permission import Permission, role_manifests
from chaos.documents.document import kind_of_document, read_document
from chaos.documents.inventory import load_inventory
from chaos.documents.yaml_text import dump
from chaos.engine.load import required_permissions
from chaos.engine.observations import LISTS
from chaos.engine.planning.permissions import describe_risk, permissions_to_list

_KINDS = {"user": "User", "group": "Group", "serviceaccount": "ServiceAccount"}
_OPTIONAL = """\
# Optional: read by doctor, plan and run if permitted (admission webhooks, health checks of machines and nodes). They
# report what they could not read. Remove the "# " to grant it:
"""


def rbac(
    experiments: tuple[Path, ...], subject: str, name: str, snapshot: bool, inventory: str | None, as_json: bool
) -> None:
    """Print roles with exactly the permissions that EXPERIMENTS, or game days, need together."""
    if not experiments and not snapshot:
        raise UsageError("missing argument: give EXPERIMENTS, or --snapshot")
    subject_ref = _subject(subject)
    described = load_inventory(Path(inventory)) if inventory else None
    permissions: set[Permission] = set()
    for path in experiments:
        permissions.update(_permissions(path, described))
    if snapshot:
        permissions.update(_snapshot_permissions(described.cluster if described else None))
    warnings = sorted({risk for permission in permissions if (risk := describe_risk(permission))})
    for risk in warnings:
        click.echo(f"warning: {risk}", err=True)
    optional = permissions_to_list(permissions, LISTS) if experiments else []
    if as_json:
        required = [_row(permission) for permission in sorted(permissions)]
        document = {"permissions": required, "optional": [_row(permission) for permission in optional]}
        click.echo(json.dumps(document | {"warnings": warnings, "rights": required}))  # "rights": key of 0.1
    else:
        click.echo(dump(role_manifests(permissions, name, subject_ref)), nl=False)
        if optional:
            optional_roles = dump(role_manifests(optional, f"{name}-doctor", subject_ref))
            click.echo(_OPTIONAL + _comment_out(optional_roles), nl=False)


def _snapshot_permissions(cluster: Cluster | None) -> Iterable[Permission]:
    return snapshot_permissions(bool(cluster and cluster.allow_node_proxy))


def _permissions(path: Path, inventory: Inventory | None) -> Iterable[Permission]:
    kind = kind_of_document(path, read_document(path))
    if kind == "Fleet":
        return fleet_permissions(load_fleet(path))
    if kind == "GameDay":
        return day_permissions(load_game_day(path), inventory)
    return required_permissions(load(path), inventory)


def _subject(text: str) -> dict[str, str]:
    kind, colon, name = text.partition(":")
    if kind not in _KINDS or not colon or not name:
        raise UsageError(f"--subject {text!r}: not of the form user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME")
    if kind != "serviceaccount":
        return {"apiGroup": "rbac.authorization.k8s.io", "kind": _KINDS[kind], "name": name}
    namespace, slash, account = name.partition("/")
    if not slash or not namespace or not account:
        raise UsageError(f"--subject {text!r}: not of the form serviceaccount:NAMESPACE/NAME")
    return {"kind": _KINDS[kind], "namespace": namespace, "name": account}


def _comment_out(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


def _row(permission: Permission) -> dict[str, str]:
    return {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "namespace": permission.namespace,
        "name": permission.name,
    }
