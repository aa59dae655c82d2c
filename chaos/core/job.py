"""A Job of Kubernetes that runs a game day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class JobView:
    """A Job. ``day`` and ``plan_hash``: what it was created for. ``reason``: why it failed, or its pod does not run."""

    name: str
    uid: str
    day: str
    plan_hash: str
    status: Literal["active", "complete", "failed"]
    reason: str = ""

    @property
    def is_active(self) -> bool:
        return self.status == "active"
