"""The copy of a cluster: a LabSpec, and how a lab of it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.snapshot.load import start_from_snapshot
from chaos.lab.snapshot.machines import lab_spec
from chaos.lab.snapshot.reader import Snapshot, SnapshotError
from chaos.lab.snapshot.unmodelled import Simplifier

# What objects that contradict each other raise, of which the reader has checked only the form.
_INCONSISTENT = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, PermissionError)


class Copy:
    """``settings``: keys of the LabSpec besides those of the snapshot. Raises SnapshotError for what has no lab."""

    def __init__(self, snapshot: Snapshot, settings: Mapping[str, Any]) -> None:
        self._snapshot, self._simplifier = snapshot, Simplifier()
        self.spec = lab_spec(snapshot, settings, self._simplifier)

    def start(self, cluster: Cluster) -> None:
        """Start a new cluster of ``spec`` with the snapshot's objects; only once. Raises SnapshotError."""
        try:
            start_from_snapshot(cluster, self._snapshot, self._simplifier)
        except _INCONSISTENT as error:
            raise SnapshotError(f"cannot simulate this cluster: {type(error).__name__}: {error}") from error

    @property
    def not_modelled(self) -> list[str]:
        """What the lab leaves out of the snapshot, one line each; complete after :meth:`start`."""
        return self._simplifier.lines()
