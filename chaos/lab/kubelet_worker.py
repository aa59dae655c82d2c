"""What the kubelet keeps of one pod on its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from chaos.lab.objects import Object

State = Literal["starting", "running", "stopping", "ended"]


@dataclass(slots=True, eq=False)
class Worker:
    """One pod on this node. ``unmounted``: its volumes are gone; ``by_shutdown``: the node's shutdown stops it.

    ``evicted``: why node pressure ended it.
    ``pod`` is the object as this process last saw it; for a ``static`` pod its file, and the API has only a mirror.
    """

    pod: Object
    uid: str
    namespace: str
    name: str
    priority: int
    termination_grace: int | None
    state: State = "starting"
    ip: str = ""
    sandbox: bool = False
    by_shutdown: bool = False
    unmounted: bool = False
    static: bool = False
    evicted: str = ""
    waiters: list[Callable[[Worker], object]] = field(default_factory=list)
