"""Inventory files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.load.cursor import Cursor, Problems, did_you_mean
from chaos.load.document import expect_kind, read_document
from chaos.load.translate import check_model
from chaos.load.tree import Entry, Leaf, Node, plain
from chaos.model.inventory import Inventory

_CONNECTION = (("identityFile",), ("knownHosts",))
_HOST = (*_CONNECTION, ("power", "caFile"), ("power", "password", "file"))
_FILES = (("cluster", "kubeconfig"), ("cluster", "kubeletCA"), ("prometheus", "credentials", "file"))


def load_inventory(path: Path) -> Inventory:
    """The inventory in ``path``, all its paths absolute. Raises BadInput with all problems."""
    root = read_document(path)
    expect_kind(path, root, "Inventory")
    problems = Problems(str(path))
    cursor = Cursor(problems, Entry(root.mark, root))
    _resolve_files(cursor, path.absolute().parent)
    _check_jumps(cursor)
    _check_nodes(cursor.get("hosts"))
    value: Any = plain(root)
    inventory = check_model(Inventory, root, value, problems)
    problems.check()
    assert isinstance(inventory, Inventory)  # noqa: S101 - None only with a problem
    return inventory


def _resolve_files(root: Cursor, folder: Path) -> None:
    """Make every path in the tree absolute; relative ones are relative to the file."""
    places = [root.get(*parts) for parts in _FILES]
    places += [root.get("defaults", *parts) for parts in _CONNECTION]
    places += [host.get(*parts) for _, host in root.get("hosts").entries() for parts in _HOST]
    done: list[Node] = []  # an alias shares its node
    for place in places:
        if place.text and isinstance(place.node, Leaf) and not any(place.node is node for node in done):
            done.append(place.node)
            try:
                place.node.value = str(folder / Path(place.text).expanduser())
            except RuntimeError:
                place.report(f"there is no home directory for {place.text!r}")


def _check_jumps(root: Cursor) -> None:
    hosts = root.get("hosts").keys()
    owners = [("", root.get("defaults")), *root.get("hosts").entries()]
    for owner, connection in owners:
        for jump in connection.get("proxyJump").items():
            text = jump.text or ""
            if owner and text == owner:
                jump.report("a host cannot be reached through itself")
            elif text not in hosts and (hint := did_you_mean(text, hosts)):  # any other name may be an address
                jump.report(f"unknown host {text!r}", hint)


def _check_nodes(hosts: Cursor) -> None:
    seen: dict[str, str] = {}
    for key, host in hosts.entries():
        node = host.get("node").text or key
        if node in seen:
            place = host.get("node")
            message = f"a second host for the node {node!r}, the first is {seen[node]!r}"
            if place:
                place.report(message)
            else:
                host.report_key(message)
        seen.setdefault(node, key)
