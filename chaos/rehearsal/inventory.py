"""The inventory of a rehearsal: what planning and preflight read of it."""

from __future__ import annotations

from chaos.app.wiring.connect import with_lab_cluster
from chaos.core.inventory import Defaults, Inventory
from chaos.lab.facade import LabSpec
from chaos.rehearsal.kube import CONTROLLERS

DOCKER = "docker"  # the transport that a rehearsal has besides SSH and pods: hosts and power control as containers


def lab_inventory(spec: LabSpec, settings: Inventory | None) -> Inventory:
    """One host for each node of the lab; ``settings`` has the limits and the protected nodes."""
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "rehearsal"},
        "cluster": {
            "kubeconfig": "rehearsal",
            "simulated": True,
            "controllerManager": {"urls": [CONTROLLERS]},
        },
        "hosts": {node.name: {"node": node.name, "address": "127.0.0.1", "os": node.os} for node in spec.nodes},
    }
    inventory = Inventory.model_validate(document)
    if settings and settings.defaults.transport == DOCKER:
        inventory = inventory.model_copy(update={"defaults": Defaults(transport=DOCKER)})
    return with_lab_cluster(settings, inventory) if settings else inventory
