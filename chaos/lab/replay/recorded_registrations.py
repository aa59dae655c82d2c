"""Kubelets of the lab that register nodes as slowly as recorded ones: what was ready last, and when, was chance."""

from __future__ import annotations

from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.registration import MESSAGES, Registration
from chaos.lab.objects.accessors import condition, name_of
from chaos.lab.replay.recording import Observation, Recording
from chaos.lab.replay.states import MERGE_WINDOW


def follow_registrations(cluster: Cluster, recording: Recording) -> None:
    """Let registrations of nodes from now on take as long as the recorded ones."""
    for name, machine in cluster.machines.items():
        machine.kubelet.registrations += registrations(recording, name)


def registrations(recording: Recording, node: str) -> list[Registration | None]:
    """Registrations of the node in order; None for one too short to be a state."""
    items = [item for item in recording.observations["nodes"] if name_of(item.object) == node]
    return [_registration(items[index:]) for index, item in enumerate(items) if item.type == "ADDED"]


def _registration(items: list[Observation]) -> Registration | None:
    first = condition(items[0].object, "Ready") or {}
    if first.get("status") != "False" or first.get("message") not in MESSAGES:
        return None
    changed = (item for item in items[1:] if (condition(item.object, "Ready") or {}).get("status") != "False")
    seconds = next((item.t - items[0].t for item in changed), 0.0)
    return Registration(first["message"], seconds) if seconds > MERGE_WINDOW else None
