"""Admission of Services: defaults and cluster addresses, which only the API server's service proxy can reach."""

from __future__ import annotations

from itertools import count

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.apiserver.store.store import Store
from chaos.lab.objects.accessors import Object

_HEADLESS = "None"


def admit_service(service: Object, store: Store) -> None:
    """Check and default a new Service in place: pkg/apis/core/v1/defaults.go. Raises InvalidError."""
    spec = service.setdefault("spec", {})
    if spec.setdefault("type", "ClusterIP") != "ClusterIP":
        raise InvalidError("the lab simulates no type of Services but ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    for index, port in enumerate(spec.get("ports") or []):
        if not port.get("port"):
            raise InvalidError(f"spec.ports[{index}].port: Required value")
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
    if spec.get("clusterIP") != _HEADLESS:
        spec["clusterIP"] = spec.get("clusterIP") or _free_address(store)
    spec["clusterIPs"] = [spec["clusterIP"]]
    service["status"] = {"loadBalancer": {}}


def _free_address(store: Store) -> str:
    """Lowest free address of 10.96.0.0/16; the first one is that of the API server itself."""
    used = {service["spec"].get("clusterIP") for service in store.list("services")}
    addresses = (f"10.96.{number >> 8}.{number & 255}" for number in count(2))
    return next(address for address in addresses if address not in used)
