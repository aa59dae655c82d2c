"""The simulated cluster that an experiment runs on where there is no snapshot."""

from __future__ import annotations

from pathlib import Path

from chaos.cli.bundled import bundled_path
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.documents.inventory import load_inventory
from chaos.engine.load import LoadedExperiment
from chaos.rehearsal.copies import Source, lab_source

_LAB = "nodefall.dev/lab"
_DEFAULT_LAB = "lab.yaml"


def lab_of(loaded: LoadedExperiment, inventory: Inventory | None) -> tuple[Source, str]:
    """The cluster of the inventory, or else the one that the experiment names; and its short name. Raises Refused."""
    if inventory is not None:
        if inventory.lab is None:
            raise Refused(
                f"nothing to rehearse on: the inventory {inventory.metadata.name} describes a real cluster",
                hint="take a snapshot of it with nodefall snapshot, and give it with --snapshot",
            )
        name = inventory.metadata.name
        return lab_source(inventory.lab, f"the simulated cluster of the inventory {name}"), name
    name = loaded.experiment.metadata.annotations.get(_LAB, _DEFAULT_LAB)
    path = bundled_path(f"hosts/{Path(name).name}")
    lab = load_inventory(path).lab
    assert lab is not None  # noqa: S101 - the bundled inventories of labs have one
    whose = "that the experiment names" if _LAB in loaded.experiment.metadata.annotations else "that is the default"
    return lab_source(lab, f"the simulated cluster {whose}, hosts/{path.name}"), path.name
