"""Options of a lab's servers; its content is in the LabSpec."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a lab's servers.

    ``speed``: maximum of simulated seconds per wall second; with ``free``, time runs at that speed without lockstep;
    ``careful``: as of Lockstep. ``linger``: wall seconds without a client after which a lab without owner ends.
    ``watch_cache_size``: maximum number of changes per resource from which a watch can continue. ``name``: context of
    the kubeconfig. ``port`` of the API server, 0 for any free port.
    """

    speed: float = 20.0
    free: bool = False
    linger: float = 120.0
    watch_cache_size: int = 10_000
    name: str = "nodefall-lab"
    port: int = 0
    careful: bool = False
