"""Server-side printing: what ``kubectl get`` shows. As pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from chaos.lab.apiserver.http.printers.cluster import CLUSTER
from chaos.lab.apiserver.http.printers.columns import DEFAULT, Printer
from chaos.lab.apiserver.http.printers.pods import PODS
from chaos.lab.apiserver.http.printers.workloads import WORKLOADS

_PRINTERS: dict[str, Printer] = {**CLUSTER, **WORKLOADS, "pods": PODS}


def printer_of(plural: str) -> Printer:
    """The printer of a resource, or the one for resources that have none of their own."""
    return _PRINTERS.get(plural, DEFAULT)
