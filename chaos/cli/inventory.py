"""The inventory of a command, with --context and --namespace as kubectl has them."""

# ruff: noqa: PLC0415 - slow imports are deferred until a cluster is contacted
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from chaos.cli.complete import complete_context
from chaos.core.errors import UsageError
from chaos.core.inventory import Cluster, Inventory

_CONTEXT, _NAMESPACE = "chaos.cli.context", "chaos.cli.namespace"  # keys in the metadata of a click context
_F = TypeVar("_F", bound=Callable[..., Any])


def context_option(function: _F) -> _F:
    """``--context``: the command's inventory gets another context of the kubeconfig."""
    return click.option(
        "--context",
        metavar="NAME",
        shell_complete=complete_context,
        expose_value=False,
        callback=_note(_CONTEXT),
        help="Use this context of the kubeconfig instead of the inventory's.",
    )(function)


def lock_namespace_option(function: _F) -> _F:
    """``--namespace`` and ``-n``: where the command looks for the lock and the journals."""
    return click.option(
        "--namespace",
        "-n",
        metavar="NAME",
        expose_value=False,
        callback=_note(_NAMESPACE),
        help="Look for the lock and the journals here, not in the inventory's cluster.namespace.",
    )(function)


def _note(key: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def note(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value:
            ctx.meta[key] = value

    return note


def command_inventory(option: str | None) -> Inventory:
    """The inventory of the option or the environment, with the given context and namespace. Raises NodefallError."""
    from chaos.app.wiring.connect import inventory_path
    from chaos.documents.inventory import load_inventory

    return overridden(load_inventory(inventory_path(option)))


def inventory_or_context(option: str | None) -> Inventory:
    """As :func:`command_inventory`; without an inventory, the cluster of ``--context``, for commands without hosts."""
    from chaos.app.wiring.connect import has_inventory

    context = _given(_CONTEXT)
    if has_inventory(option) or not context:
        return command_inventory(option)
    from chaos.cluster.client import connect
    from chaos.cluster.cluster_state import cluster_uid

    uid = cluster_uid(connect("", context))
    settings = {"kubeconfig": "", "context": context, "expectUID": uid}
    document = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "kubeconfig"}}
    return overridden(Inventory.model_validate(document | {"cluster": settings}))


def overridden(inventory: Inventory) -> Inventory:
    """The inventory with the given context and namespace. Raises UsageError for a lab, which has no context."""
    context, namespace = _given(_CONTEXT), _given(_NAMESPACE)
    if not context and not namespace:
        return inventory
    if inventory.cluster is None:
        raise UsageError("--context and --namespace need a cluster: this inventory starts a lab")
    changes = {"context": context or inventory.cluster.context, "namespace": namespace or inventory.cluster.namespace}
    cluster = Cluster.model_validate(inventory.cluster.model_dump(by_alias=True, exclude_unset=True) | changes)
    return inventory.model_copy(update={"cluster": cluster})


def inventory_of(path: str) -> Inventory:
    """The inventory in a file that the user has named, with the given context and namespace. Raises NodefallError."""
    from chaos.documents.inventory import load_inventory

    return overridden(load_inventory(Path(path)))


def refuse_overrides(reason: str) -> None:
    """Raises UsageError if a context or a namespace is given. ``reason``: why it has no effect."""
    if _given(_CONTEXT) or _given(_NAMESPACE):
        raise UsageError(f"--context and --namespace have no effect: {reason}")


def _given(key: str) -> str:
    context = click.get_current_context(silent=True)
    return str(context.meta.get(key, "")) if context else ""


def require_running(inventory: Inventory) -> Inventory:
    """The inventory of a running cluster. Raises UsageError for an inventory that describes a lab to be started."""
    if inventory.lab:
        raise UsageError(
            "no lab is running, so no run can be active", hint="give the inventory that nodefall lab up prints"
        )
    return inventory
