"""A lookup of a name by the host, at its DNS server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact
from chaos.model.field_types import DnsName

_FOUND, _NOT_FOUND = 0, 2  # getent(1)


class DnsLookupParams(Model):
    name: DnsName = Field(description="as kubernetes.io")


class DnsLookup(HostFact):
    """True or false: whether the name is resolved over port 53, without /etc/hosts and other sources."""

    name = "dns-lookup"
    summary = "whether the host can look up a name at its DNS server"
    params = DnsLookupParams
    options: DnsLookupParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        limits = "RES_OPTIONS=timeout:2 attempts:1"
        argv = ("env", limits, "getent", "-s", "dns", "ahosts", f"{self.options.name}.")
        return HostCommand(argv, accept=(_FOUND, _NOT_FOUND), timeout=30.0, sudo=False)

    def parse(self, stdout: str, exit_code: int) -> bool:
        if exit_code not in (_FOUND, _NOT_FOUND):
            raise ValueError("getent did not answer")
        return bool(stdout.strip())


FACT = DnsLookup()
