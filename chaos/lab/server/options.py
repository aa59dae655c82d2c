"""How a lab is served; the LabSpec says what is in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """``speed`` in simulated seconds a wall second, at most; ``free``: time always moves, at that speed.

    ``linger``: wall seconds without a client after which a lab ends whose owner died. ``ring``: changes of a kind
    that a watch can go back at most. ``name`` is the kubeconfig's context. ``port`` is the API server's, 0 for any.
    """

    speed: float = 20.0
    free: bool = False
    linger: float = 120.0
    watch_cache_size: int = 10_000
    name: str = "nodefall-lab"
    port: int = 0
