"""Inventory files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.core.driver import file_keys
from chaos.core.installed_drivers import DEFAULT_TRANSPORT, power_drivers, transport_drivers
from chaos.core.inventory import Inventory
from chaos.documents.document import expect_kind, read_document
from chaos.documents.error_collector import Cursor, ErrorCollector, did_you_mean
from chaos.documents.pydantic_errors import check_model
from chaos.documents.tree import MappingEntry, MappingNode, Node, ScalarNode, to_builtins

_CONNECTION = (("identityFile",), ("knownHosts",))
_FILES = (
    ("cluster", "kubeconfig"),
    ("cluster", "kubeletCA"),
    ("cluster", "controllerManager", "ca"),
    ("cluster", "journalKey", "file"),
    ("prometheus", "credentials", "file"),
)


def load_inventory(path: Path) -> Inventory:
    """The inventory in ``path``, all its paths absolute. Raises BadInput with all problems."""
    root = read_document(path, "Inventory")
    expect_kind(path, root, "Inventory")
    errors = ErrorCollector(str(path))
    cursor = Cursor(errors, MappingEntry(root.mark, root))
    _resolve_files(cursor, path.absolute().parent)
    _check_jumps(cursor)
    _check_nodes(cursor.get("hosts"))
    value: Any = to_builtins(root)
    inventory = check_model(Inventory, root, value, errors)
    _check_options(cursor, value, errors)
    _check_systems(cursor)
    errors.raise_if_any()
    assert isinstance(inventory, Inventory)  # noqa: S101 - None only with a problem
    return inventory


@dataclass(frozen=True, slots=True)
class ReferencedFiles:
    """The paths of files in an inventory, as they are written there; ``others`` than the kubeconfig."""

    kubeconfig: str
    others: tuple[str, ...]


def referenced_files(path: Path) -> ReferencedFiles:
    """The files to which a valid inventory refers, without duplicates. Raises BadInput."""
    root = read_document(path)
    cursor = Cursor(ErrorCollector(str(path)), MappingEntry(root.mark, root))
    kubeconfig, *others = _file_places(cursor)
    return ReferencedFiles(kubeconfig.text or "", tuple(dict.fromkeys(place.text for place in others if place.text)))


def _file_places(root: Cursor) -> list[Cursor]:
    """Every path in the tree, that of the kubeconfig first; places that have none, too."""
    places = [root.get(*parts) for parts in _FILES]
    places += [root.get("defaults", *parts) for parts in _CONNECTION]
    hosts = [host for _, host in root.get("hosts").entries()]
    places += [host.get(*parts) for host in hosts for parts in _CONNECTION]
    places += [place for host in (root.get("defaults"), *hosts) for place in _power_files(host.get("power"))]
    return places + [place for host in (root.get("defaults"), *hosts) for place in _option_files(root, host)]


def _resolve_files(root: Cursor, folder: Path) -> None:
    """Make every path in the tree absolute; relative ones are relative to the file."""
    resolved: list[Node] = []  # aliases share a node
    for place in _file_places(root):
        if place.text and isinstance(place.node, ScalarNode) and not any(place.node is node for node in resolved):
            resolved.append(place.node)
            try:
                place.node.value = str(folder / Path(place.text).expanduser())
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


def _check_options(root: Cursor, value: Mapping[str, Any], errors: ErrorCollector) -> None:
    """Check each host's ``options``, together with those of ``defaults`` for the same transport, by its driver."""
    defaults = root.get("defaults")
    usual = defaults.get("transport").text or DEFAULT_TRANSPORT
    if not value.get("hosts") and usual in transport_drivers():
        _check_shared_options(defaults, _options(value.get("defaults")), usual, errors)
    for key, host in root.get("hosts").entries():
        name = host.get("transport").text or usual
        if name not in transport_drivers():
            continue
        model = transport_drivers()[name].options
        shared = _options(value.get("defaults")) if name == usual else {}
        place = host.get("options") or (defaults.get("options") if shared else None) or host
        options = {**shared, **_options(value["hosts"].get(key))}
        if model is None and options:
            place.report_key(f"transport {name} has no options", "remove them")
        elif model is not None and place.entry:
            node = place.entry.node if options else MappingNode(place.entry.node.mark, {})
            check_model(model, node, options, errors)


def _check_shared_options(defaults: Cursor, options: Mapping[str, Any], name: str, errors: ErrorCollector) -> None:
    """The options of ``defaults`` where no host is listed."""
    place, model = defaults.get("options"), transport_drivers()[name].options
    if not options:
        return
    if model is None:
        place.report_key(f"transport {name} has no options", "remove them")
    elif place.entry:
        check_model(model, place.entry.node, options, errors)


def _options(connection: Any) -> Mapping[str, Any]:
    options = connection.get("options") if isinstance(connection, dict) else None
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
