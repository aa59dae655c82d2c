"""Server-side printing, for ``kubectl get``. As pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from chaos.lab.apiserver.http.printers.cluster import CLUSTER
from chaos.lab.apiserver.http.printers.columns import DEFAULT, Printer
from chaos.lab.apiserver.http.printers.pods import PODS
from chaos.lab.apiserver.http.printers.workloads import WORKLOADS

_PRINTERS: dict[str, Printer] = {**CLUSTER, **WORKLOADS, "pods": PODS}


def printer_of(plural: str) -> Printer:
    """Printer of a resource, or the default printer."""
    return _PRINTERS.get(plural, DEFAULT)
