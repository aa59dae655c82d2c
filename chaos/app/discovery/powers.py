"""What switches the machines of Nodes: the power controls that an inventory is proposed with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import ValidationError

from chaos.app.discovery.machines import Access, provider_of
from chaos.app.discovery.nodes import ListedNode
from chaos.core.driver import PowerSettings

Kinds = Mapping[str, type[PowerSettings]]
Settings = dict[str, Any]
_MANUAL: Settings = {"kind": "manual", "deadline": "10m"}
_OTHERS = "replace it by redfish, ipmi, command or wake-on-lan (docs/power.md) for runs without a person"
_NODE = "{node}"


def provider_power(provider_id: str, kinds: Kinds) -> PowerSettings | None:
    """The power control of the machine with its required keys; None without a driver that these keys suffice for.

    ``kinds``: settings of the installed drivers by name.
    """
    provider = provider_of(provider_id)
    settings = kinds.get(provider.kind) if provider else None
    found = re.fullmatch(provider.pattern, provider_id) if provider else None
    if provider is None or settings is None or found is None:
        return None
    document: dict[str, Any] = {"kind": provider.kind}
    for name, field in settings.model_fields.items():
        key = field.alias or name
        if field.is_required() and found.groupdict().get(key):
            document[key] = found[key]
    try:
        return settings.model_validate(document)
    except ValidationError:  # the driver needs what the provider ID does not have
        return None


@dataclass(frozen=True, slots=True)
class PowerChoice:
    """Settings that a person chose; ``{node}`` in a text stands for the Node's name, and makes it one of each host."""

    settings: Settings

    def of(self, node: str) -> Settings:
        """The settings for a machine."""
        return {
            key: value.replace(_NODE, node) if isinstance(value, str) else value for key, value in self.settings.items()
        }

    @property
    def is_shared(self) -> bool:
        return not any(isinstance(value, str) and _NODE in value for value in self.settings.values())


def powers(
    nodes: tuple[ListedNode, ...],
    access: Mapping[str, Access],
    choice: PowerChoice | None,
    kinds: Kinds,
    domains: Mapping[str, str],
) -> tuple[Settings, dict[str, Settings], str]:
    """Power of ``defaults``, {} for none; that of each machine that has another; and the reason.

    ``domains``: names of libvirt's domains by UUID.
    """
    machines = [node for node in nodes if access[node.name].is_machine]
    if not machines:
        return {}, {}, ""
    if choice is not None:
        if choice.is_shared:
            return choice.settings, {}, "as chosen"
        return {}, {node.name: choice.of(node.name) for node in machines}, "power: as chosen, by the Nodes' names"
    if all(access[node.name].is_container for node in machines):
        engine = access[machines[0].name].engine
        return (
            {"kind": "docker"} | ({"engine": engine} if engine else {}),
            {},
            "containers and Nodes have the same names",
        )
    return _by_provider(machines, kinds, domains)


def domain_power(node: ListedNode, kinds: Kinds, domains: Mapping[str, str]) -> PowerSettings | None:
    """The power control of the domain that has the node's UUID, else its name; None without one."""
    name = domains.get(node.info.system_uuid.lower()) or (node.name if node.name in domains.values() else "")
    if not name or "libvirt" not in kinds:
        return None
    own = {} if name == node.name else {"domain": name}
    return kinds["libvirt"].model_validate({"kind": "libvirt", **own})


def _by_provider(
    machines: list[ListedNode], kinds: Kinds, domains: Mapping[str, str]
) -> tuple[Settings, dict[str, Settings], str]:
    found = {
        node.name: provider_power(node.provider_id, kinds) or domain_power(node, kinds, domains) for node in machines
    }
    own = {name: each for name, each in found.items() if each is not None}
    documents = {name: each.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, each in own.items()}
    shared = [documents[name] for name, each in own.items() if not each.names_machine]
    if not own:
        return _MANUAL, {}, f"{_without_driver(machines)}: a person is asked; {_OTHERS}"
    usual: Settings = {}
    if shared:
        (encoded, _), *_ = Counter(msgspec.json.encode(each, order="sorted") for each in shared).most_common(1)
        usual = next(each for each in shared if msgspec.json.encode(each, order="sorted") == encoded)
    others = {node.name: documents.get(node.name, _MANUAL) for node in machines if documents.get(node.name) != usual}
    by_domain = any(each.kind == "libvirt" for each in own.values()) and domains
    return usual, others, "by libvirt's domains on this machine" if by_domain else "by the provider IDs of the Nodes"


def _without_driver(machines: list[ListedNode]) -> str:
    provider = next((each for node in machines if (each := provider_of(node.provider_id))), None)
    if provider:
        return f"no power control for {provider.name} is installed"
    return "the cluster does not show how its machines are switched on and off"
