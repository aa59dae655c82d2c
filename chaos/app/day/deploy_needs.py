"""What documents say about the world outside of the pod: secrets, ports, and nodes on which it must not run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from chaos.core.field_types import Secret
from chaos.core.installed_drivers import DEFAULT_TRANSPORT, transport_drivers
from chaos.core.inventory import Defaults, Host, Inventory
from chaos.core.labels import ZONE_LABEL
from chaos.core.target_spec import TargetSpec
from chaos.engine.connection import OPENSSH
from chaos.gameday.deploy.deployment import NodePreferences, Port
from chaos.gameday.document import ChatReceiver, GameDaySpec

_API_PORTS = (443, 6443)  # of the Service, and of the API servers behind it: a policy may see either
_KUBELET_PORT = 10250
_SCHEME_PORTS = {"http": 80, "https": 443}
_TRANSPORT_PORTS = {"ssh": (22,), "openssh": (22,), "winrm": (5985, 5986)}
_UDP_POWER = {"ipmi": 623, "wake-on-lan": 9}
_JUMP_PORT = re.compile(r":([0-9]+)$")
_OS = "kubernetes.io/os"


def secret_env_of(spec: GameDaySpec, inventory: Inventory) -> tuple[str, ...]:
    """Names of the environment variables that are secrets, sorted."""
    secrets = (*_secrets(spec.notify), *_secrets(_parts(inventory)))
    return tuple(sorted({secret.env for secret in secrets if secret.env}))


def secret_files_of(spec: GameDaySpec) -> tuple[str, ...]:
    """Files with secrets that a game day names; those of an inventory are found by its loader."""
    return tuple(dict.fromkeys(secret.file for secret in _secrets(spec.notify) if secret.file))


def programs_of(spec: GameDaySpec, inventory: Inventory) -> tuple[str, ...]:
    """Programs that a run starts on its own machine, sorted: the image does not have them."""
    secrets = (*_secrets(spec.notify), *_secrets(_parts(inventory)))
    found = {secret.command[0] for secret in secrets if secret.command}
    if any(_transport(each, inventory) == OPENSSH for each in _connections(inventory)):
        found.add("ssh")
    for power in (each.power for each in _connections(inventory) if each.power):
        found |= {"ipmitool"} if power.kind == "ipmi" else set()
        if power.kind == "command":
            found |= {value[0] for _, value in power if isinstance(value, list) and value and isinstance(value[0], str)}
    return tuple(sorted(found))


def ports_of(spec: GameDaySpec, inventory: Inventory) -> tuple[Port, ...]:
    """Ports to which the day connects, besides those of name servers."""
    found = {Port(number) for number in (*_API_PORTS, _KUBELET_PORT)}
    found |= {Port(number) for number in _url_ports([spec.gates, spec.notify, [e.gates for e in spec.entries]])}
    found |= {Port(number) for number in _url_ports(_parts(inventory))}
    if any(isinstance(receiver, ChatReceiver) for receiver in spec.notify):
        found.add(Port(_SCHEME_PORTS["https"]))  # their URLs are secrets
    for connection in _connections(inventory):
        found |= {Port(number) for number in _connection_ports(connection, inventory)}
        if connection.power and connection.power.kind in _UDP_POWER:
            found.add(Port(_UDP_POWER[connection.power.kind], "UDP"))
    return tuple(sorted(found))


def preferences_of(targets: Iterable[Mapping[str, object]], inventory: Inventory) -> NodePreferences:
    """Where the pod may run, by the targets of each entry."""
    specs = [spec for each in targets for spec in each.values() if isinstance(spec, TargetSpec)]
    never = {node for spec in specs for node in spec.nodes or ()}
    labels = {pair for spec in specs if not spec.nodes for pair in _labels(spec)}
    return NodePreferences(
        never=tuple(sorted(never)),
        rather_not=tuple(sorted(labels)),
        protected=tuple(sorted(set(inventory.protected.nodes) - never)),
        control_planes="control-plane" in inventory.protected.roles,
    )


def _labels(spec: TargetSpec) -> Iterator[tuple[str, str]]:
    yield from (spec.match_labels or {}).items()
    yield from ((each.key, value) for each in spec.match_expressions if each.operator == "In" for value in each.values)
    if spec.zone:
        yield ZONE_LABEL, spec.zone
    if spec.os == "windows":
        yield _OS, spec.os


def _connections(inventory: Inventory) -> list[Host | Defaults]:
    return [inventory.defaults, *inventory.hosts.values()]


def _connection_ports(connection: Host | Defaults, inventory: Inventory) -> Iterator[int]:
    if connection.port:
        yield connection.port
    else:
        yield from _TRANSPORT_PORTS.get(_transport(connection, inventory), ())
    for jump in connection.proxy_jump or ():
        match = _JUMP_PORT.search(jump)
        yield int(match[1]) if match else _TRANSPORT_PORTS["ssh"][0]


def _transport(connection: Host | Defaults, inventory: Inventory) -> str:
    return connection.transport or inventory.defaults.transport or DEFAULT_TRANSPORT


def _parts(inventory: Inventory) -> list[Any]:
    """The inventory, and the options of transports as their models have them."""
    default = inventory.defaults.transport or DEFAULT_TRANSPORT
    options = []
    for connection in _connections(inventory):
        model = transport_drivers()[connection.transport or default].options
        if model is not None and (values := {**inventory.defaults.options, **connection.options}):
            options.append(model.model_validate(values))
    return [inventory, options]


def _secrets(value: Any) -> Iterator[Secret]:
    return (each for each in _walk(value) if isinstance(each, Secret))


def _url_ports(value: Any) -> Iterator[int]:
    for text in _walk(value):
        if isinstance(text, str) and text.startswith(("http://", "https://")):
            parts = urlsplit(text)
            yield parts.port or _SCHEME_PORTS[parts.scheme]


def _walk(value: Any) -> Iterator[Any]:
    """All values within models, mappings and lists."""
    yield value
    if isinstance(value, BaseModel):
        for _, each in value:
            yield from _walk(each)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _walk(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _walk(each)
