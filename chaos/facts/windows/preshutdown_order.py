"""Order in which services get the pre-shutdown notice."""

from __future__ import annotations

from chaos.facts.windows._registry import is_missing, parse_value, query_value
from chaos.model.fact import HostFact

_VALUE = "PreshutdownOrder"


class PreshutdownOrder(HostFact):
    """List of service names; null where the registry has none, and a kubelet's shutdown manager does not start."""

    name = "preshutdown-order"
    summary = "services in the order in which they get the pre-shutdown notice"
    command = query_value(r"HKLM\SYSTEM\CurrentControlSet\Control", _VALUE)

    def parse(self, stdout: str, exit_code: int) -> list[str] | None:
        if is_missing(stdout, exit_code):
            return None
        return [name for name in parse_value(stdout, exit_code, _VALUE).split("\\0") if name]


FACT = PreshutdownOrder()
