"""What the live view shows of the cluster. Each update reads only what was recorded since the last one."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.cli.run.view.node_rows import NodeRows
from chaos.cli.run.view.workload_rows import WORKLOADS, WorkloadRows
from chaos.core.recording import EntryKind
from chaos.core.text import printable
from chaos.core.timeline import Timeline


@dataclass
class ClusterState:
    """Nodes and workloads as last observed; ``experiment``: its name."""

    experiment: str = ""
    is_simulated: bool = False
    nodes: NodeRows = field(default_factory=NodeRows)
    workloads: WorkloadRows = field(default_factory=WorkloadRows)
    _read: int = 0  # entries of the timeline

    def update(self, timeline: Timeline) -> None:
        """Take the entries that are new. Call it from the thread that lets the timeline grow."""
        meta = timeline.meta
        if not self.experiment and meta:
            self.experiment = printable(str(meta.get("experiment", "")))
            self.is_simulated = bool(meta.get("simulated"))
            self.workloads.namespace = str(meta.get("workload", ""))
            self.nodes.mark_targets(meta.get("targets", {}))
        first_step = timeline.actions[0][0].seq if timeline.actions else len(timeline.entries)
        for entry in timeline.entries[self._read :]:
            if entry.kind == "pods":
                self.nodes.add_pod(entry)
            elif entry.kind == "nodes":
                self.nodes.add_node(entry, entry.seq > first_step)
            elif entry.kind in WORKLOADS:
                self.workloads.add(entry, entry.seq > first_step)
            elif entry.kind == EntryKind.HOST:
                self.nodes.add_fact(entry)
        self._read = len(timeline.entries)
