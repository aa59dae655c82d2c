"""Quotas of WinRM, which Windows Server before 2016 keeps small."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.api_fact import PseudoFact
from chaos.model.winrm_use import LEAST_QUOTAS
from chaos.preflight.check import Check, Diagnosis, note, ok, warning
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_FACT = str(PseudoFact.WINRM_QUOTAS)
_HOST = frozenset({Need.HOST})


class WinRmQuotas(Check):
    """Compares them with what one run of nodefall uses at once. Hosts over SSH have none."""

    name = "winrm-quotas"
    summary = "the quotas of WinRM permit what nodefall uses at once"
    facts = (_FACT,)
    systems = frozenset({"windows"})

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            yield _diagnose(host)


def _diagnose(host: HostObservations) -> Diagnosis:
    quotas: dict[str, int] | None = host.fact(_FACT)
    if quotas is None:
        return note(f"{host.node}: the quotas of WinRM are unknown: {host.unknown_reason(_FACT)}", "", host.node, _HOST)
    small = [f"{name} is {quotas[name]}" for name, least in LEAST_QUOTAS.items() if quotas.get(name, least) < least]
    if not quotas:
        return ok("it is not reached over WinRM", host.node)
    if not small:
        return ok("no quota is too small", host.node)
    needs = ", ".join(f"{name} {least}" for name, least in LEAST_QUOTAS.items())
    message = f"{host.node}: quotas of WinRM are too small ({', '.join(small)}), so commands may be refused in a run"
    return warning(message, f"raise them to at least: {needs}; `winrm get winrm/config` shows them", host.node, _HOST)


CHECK = WinRmQuotas()
