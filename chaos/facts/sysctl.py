"""Value of any kernel parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact

_SWAP = str.maketrans("./", "/.")


def _key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_:@-]+)+", text):
        raise ValueError(f"{text!r} is no kernel parameter; write vm.swappiness")
    return text


class SysctlParams(Model):
    key: Annotated[str, AfterValidator(_key)] = Field(description="name of the parameter, as vm.swappiness")


def sysctl_path(key: str) -> str:
    """File of a parameter. As in sysctl(8), the first separator decides which of ``.`` and ``/`` separates."""
    dotted = re.search(r"[./]", key)
    return f"/proc/sys/{key.translate(_SWAP) if dotted and dotted[0] == '.' else key}"


class Sysctl(HostFact):
    """Text: value of the parameter ``key``, a text for numbers too; several numbers are separated by one space."""

    name = "sysctl"
    summary = "value of a kernel parameter"
    params = SysctlParams
    options: SysctlParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return HostCommand(("cat", sysctl_path(self.options.key)))

    def parse(self, stdout: str, exit_code: int) -> str:
        if exit_code:
            raise ValueError(f"there is no kernel parameter {self.options.key} on the host")
        return " ".join(stdout.split())


FACT = Sysctl()
