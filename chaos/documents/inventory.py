"""Inventories, from files or built by a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chaos.core.driver import file_keys
from chaos.core.errors import UsageError
from chaos.core.files import absolute_paths
from chaos.core.installed_drivers import DEFAULT_TRANSPORT, power_drivers, transport_drivers
from chaos.core.inventory import Inventory
from chaos.core.lab_settings import Lab
from chaos.documents.document import open_document, read_document
from chaos.documents.problems import Cursor, ErrorCollector, check_document, check_model
from chaos.documents.wording import did_you_mean
from chaos.documents.yaml_tree import MappingNode, Node, ScalarNode

_CONNECTION = (("identityFile",), ("knownHosts",))
_FILES = (
    ("cluster", "kubeconfig"),
    ("cluster", "kubeletCA"),
    ("cluster", "controllerManager", "ca"),
    ("cluster", "journalKey", "file"),
    ("prometheus", "credentials", "file"),
    ("prometheus", "ca"),
    ("prometheus", "clientCertificate"),
    ("prometheus", "clientKey"),
)


def load_inventory(path: Path) -> Inventory:
    """The inventory in ``path``, all its paths absolute. Raises BadInput with all problems."""
    root = open_document(path, "Inventory")
    _resolve_files(root, path.absolute().parent)
    _check_jumps(root)
    _check_nodes(root.get("hosts"))
    inventory = check_document(Inventory, root)
    _check_options(root)
    _check_systems(root)
    return root.errors.require(inventory)


@dataclass(frozen=True, slots=True)
class ReferencedFiles:
    """The paths of files in an inventory, as they are written there; ``others`` than the kubeconfig."""

    kubeconfig: str
    others: tuple[str, ...]


def referenced_files(path: Path) -> ReferencedFiles:
    """The files to which a valid inventory refers, without duplicates. Raises BadInput."""
    cursor = Cursor.of(ErrorCollector(str(path)), read_document(path))
    kubeconfig, *others = _file_places(cursor)
    return ReferencedFiles(kubeconfig.text or "", tuple(dict.fromkeys(place.text for place in others if place.text)))


def _file_places(root: Cursor) -> list[Cursor]:
    """Every path in the tree, that of the kubeconfig first; places that have none, too."""
    places = [root.get(*parts) for parts in _FILES]
    places += [header.get("file") for _, header in root.get("prometheus", "headers").entries()]
    places += [root.get("defaults", *parts) for parts in _CONNECTION]
    hosts = [host for _, host in root.get("hosts").entries()]
    places += [host.get(*parts) for host in hosts for parts in _CONNECTION]
    places += [place for host in (root.get("defaults"), *hosts) for place in _power_files(host.get("power"))]
    return places + [place for host in (root.get("defaults"), *hosts) for place in _option_files(root, host)]


def _resolve_files(root: Cursor, folder: Path) -> None:
    """Make every path in the tree absolute; relative ones are relative to the file."""
    resolved: list[Node] = []  # aliases share a node
    places = _file_places(root)
    for place in places:
        if place.text and isinstance(place.node, ScalarNode) and not any(place.node is node for node in resolved):
            resolved.append(place.node)
            try:
                is_kubeconfig = place is places[0]
                place.node.value = (
                    absolute_paths(place.text, folder) if is_kubeconfig else str(folder / Path(place.text).expanduser())
                )
            except RuntimeError:
                place.report(f"no home directory for {place.text!r}")


def _power_files(power: Cursor) -> Iterator[Cursor]:
    """Paths in the settings of a power driver."""
    driver = power_drivers().get(power.get("kind").text or "")
    for *parents, last in file_keys(driver.settings) if driver else ():
        if parents[-1:] == ["*"]:
            yield from (entry.get(last) for _, entry in power.get(*parents[:-1]).entries())
        else:
            yield power.get(*parents, last)


def _option_files(root: Cursor, connection: Cursor) -> Iterator[Cursor]:
    """Paths in the options of a transport driver."""
    name = connection.get("transport").text or root.get("defaults", "transport").text or DEFAULT_TRANSPORT
    driver = transport_drivers().get(name)
    options = connection.get("options")
    yield from (options.get(*key) for key in (file_keys(driver.options) if driver and driver.options else ()))


def _check_options(root: Cursor) -> None:
    """Check each host's ``options``, together with those of ``defaults`` for the same transport, by its driver."""
    defaults = root.get("defaults")
    usual = defaults.get("transport").text or DEFAULT_TRANSPORT
    if not root.get("hosts").value and _options(defaults):
        _check_by_driver(defaults.get("options"), _options(defaults), usual)
    for _, host in root.get("hosts").entries():
        name = host.get("transport").text or usual
        shared = _options(defaults) if name == usual else {}
        place = host.get("options") or (defaults.get("options") if shared else None) or host
        _check_by_driver(place, {**shared, **_options(host)}, name)


def _check_by_driver(place: Cursor, options: Mapping[str, Any], name: str) -> None:
    driver = transport_drivers().get(name)
    if driver is None:
        return
    if driver.options is None and options:
        place.report_key(f"transport {name} has no options", "remove them")
    elif driver.options is not None and place.entry:
        node = place.entry.node if options else MappingNode(place.entry.node.mark, {})
        check_model(driver.options, node, options, place.errors)


def _options(connection: Cursor) -> Mapping[str, Any]:
    options = connection.get("options").value
    return options if isinstance(options, dict) else {}


def _check_jumps(root: Cursor) -> None:
    hosts = root.get("hosts").keys()
    owners = [("", root.get("defaults")), *root.get("hosts").entries()]
    for owner, connection in owners:
        for jump in connection.get("proxyJump").items():
            text = jump.text or ""
            if owner and text == owner:
                jump.report("a host cannot be reached through itself")
            elif text not in hosts:  # any other name may be an address
                hint = did_you_mean(text, hosts)
                if hint.startswith("did you mean"):
                    jump.report(f"unknown host {text!r}", hint)


def _check_systems(root: Cursor) -> None:
    """Each transport is one of the operating system of the host."""
    default = root.get("defaults").get("transport").text or DEFAULT_TRANSPORT
    for _, host in root.get("hosts").entries():
        name, system = host.get("transport").text or default, host.get("os").text or "linux"
        driver = transport_drivers().get(name)
        if driver is None or system in driver.systems:
            continue
        message = f"transport {name} is for hosts with os {' or '.join(sorted(driver.systems))}, this one has {system}"
        place = host.get("transport") or host.get("os")
        if place:
            place.report(message, "correct transport or os")
        else:
            host.report_key(message, "add os or transport to the host")


def _check_nodes(hosts: Cursor) -> None:
    hosts_by_node: dict[str, str] = {}
    for key, host in hosts.entries():
        node = host.get("node").text or key
        if node in hosts_by_node:
            place = host.get("node")
            message = f"duplicate host for the node {node!r}, the first is {hosts_by_node[node]!r}"
            if place:
                place.report(message)
            else:
                host.report_key(message)
        hosts_by_node.setdefault(node, key)


def as_inventory(source: Inventory | Path | str) -> Inventory:
    """``source``, or the inventory in that file. Raises BadInput."""
    return source if isinstance(source, Inventory) else load_inventory(Path(source))


def lab_inventory(source: Inventory | Path | str | None, settings: Mapping[str, Any]) -> Inventory:
    """The inventory of a lab with ``settings`` applied; by default ``lab: {}``. Raises BadInput, UsageError."""
    if source is None:
        head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "lab"}}
        inventory = Inventory.model_validate(head | {"lab": {}})
    else:
        inventory = as_inventory(source)
    if inventory.lab is None:
        raise UsageError(f"{inventory.metadata.name} describes a cluster, not a lab", hint="see hosts/lab.yaml")
    return inventory.model_copy(update={"lab": with_settings(inventory.lab, settings)})


def with_settings(lab: Lab, settings: Mapping[str, Any]) -> Lab:
    """``lab`` with ``settings`` applied, by the keys of an inventory. Raises UsageError."""
    try:
        return Lab.model_validate({**lab.model_dump(by_alias=True), **settings})
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        known = [field.alias or name for name, field in Lab.model_fields.items()]
        near = get_close_matches(key, known, 1) if first["type"] == "extra_forbidden" else []
        why = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{key}: {why}", hint=f"did you mean {near[0]!r}?" if near else "") from error
