"""Time that Windows gives the kubelet's service before a shutdown."""

from __future__ import annotations

from chaos.facts.windows._registry import is_missing, parse_number, query_value
from chaos.facts.windows._services import KUBELET, service_key
from chaos.model.fact import HostFact

_VALUE = "PreshutdownTimeout"


class PreshutdownTimeout(HostFact):
    """Number of seconds; null where the registry has none for the service, and the default of Windows holds."""

    name = "preshutdown-timeout"
    summary = "seconds that Windows waits for the kubelet's service after the pre-shutdown notice"
    command = query_value(service_key(KUBELET), _VALUE)

    def parse(self, stdout: str, exit_code: int) -> float | None:
        return None if is_missing(stdout, exit_code) else parse_number(stdout, exit_code, _VALUE) / 1000


FACT = PreshutdownTimeout()
