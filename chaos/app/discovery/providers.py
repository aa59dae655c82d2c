"""The power control of a machine by the provider ID of its Node, where a driver for it is installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chaos.core.driver import PowerSettings

Kinds = Mapping[str, type[PowerSettings]]


@dataclass(frozen=True, slots=True)
class Provider:
    """Provider IDs of a cloud or hypervisor: ``pattern`` has a group for each key that a power control may need."""

    kind: str
    name: str
    pattern: str
    source: str


PROVIDERS = (
    Provider(
        "aws", "Amazon EC2", r"aws:///(?P<zone>(?P<region>[a-z]+(?:-[a-z]+)+-\d+)[a-z]?)/(?P<instance>i-[0-9a-f]+)",
        "kubernetes/cloud-provider-aws: pkg/providers/v1/instances.go",
    ),
    Provider(
        "gcp", "Google Compute Engine", r"gce://(?P<project>[^/]+)/(?P<zone>[^/]+)/(?P<instance>[^/]+)",
        "kubernetes/cloud-provider-gcp: providers/gce/gce_util.go",
    ),
    Provider(
        "azure", "Azure",
        r"azure:///subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<resourceGroup>[^/]+)/providers/"
        r"Microsoft\.Compute/(?P<instance>virtualMachine(?:s|ScaleSets)/.+)",
        "kubernetes-sigs/cloud-provider-azure: pkg/provider/azure_wrap.go",
    ),
    Provider(
        "openstack", "OpenStack", r"openstack://(?P<region>[^/]*)/(?P<instance>[0-9a-f-]{36})",
        "kubernetes/cloud-provider-openstack: pkg/openstack/instances.go",
    ),
    Provider("vsphere", "vSphere", r"vsphere://(?P<instance>[0-9a-fA-F-]{36})", "kubernetes/cloud-provider-vsphere"),
    Provider(
        "proxmox", "Proxmox", r"proxmox://(?P<region>[^/]*)/(?P<instance>\d+)",
        "sergelogvinov/proxmox-cloud-controller-manager",
    ),
    Provider("libvirt", "libvirt", r"libvirt://[^/]*/(?P<instance>[^/]+)", "openshift/cluster-api-provider-libvirt"),
)  # fmt: skip


def provider_of(provider_id: str) -> Provider | None:
    """The provider whose form the ID has; a cloud that is not in the table has none."""
    return next((each for each in PROVIDERS if re.fullmatch(each.pattern, provider_id)), None)


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
