"""Which generation of a pod a writer of its status has seen."""

from __future__ import annotations

from chaos.lab.objects.accessors import Object
from chaos.lab.spec import LabSpec


def observed_generation(pod: Object, spec: LabSpec) -> dict[str, int]:
    """The field ``observedGeneration`` of the pod's status or of one of its conditions; empty in older versions."""
    if not spec.has_feature("pod-observed-generation"):
        return {}
    return {"observedGeneration": pod["metadata"].get("generation", 1)}
