"""Requests of a run to the API server: when they were answered, and that the recording proves their effect. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.objects.accessors import Object, is_deleting, name_of, namespace_of, uid_of
from chaos.lab.replay.recording import Observation

_WORKLOAD = "workload"  # stands for the namespace of the run's workload


@dataclass(slots=True)
class Request:
    """One step's request, in epoch seconds: sent after ``begun``, answered and proved at these times, if it was.

    It wrote the object of this kind, namespace and name, or the pods with these UIDs.
    """

    begun: float
    answered: float | None = None
    proved: float | None = None
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uids: set[str] = field(default_factory=set)

    def wrote(self, item: Observation, before: Object | None, plural: str) -> bool:
        """Whether the change is the one that it made. Only what was seen between begin and proof can have proved it."""
        if before is None or self.answered is None or self.proved is None or not self.begun <= item.t <= self.proved:
            return False
        obj = item.object
        if uid_of(obj) in self.uids:
            return is_deleting(obj) and not is_deleting(before) and obj.get("status") == before.get("status")
        is_named = (namespace_of(obj), name_of(obj)) == (self.namespace, self.name) and f"{self.kind}s" == plural
        return is_named and obj["metadata"].get("generation") != before["metadata"].get("generation")


class Requests:
    """The requests of all steps, from the entries of actions."""

    def __init__(self) -> None:
        self._by_step: dict[tuple[str, str], Request] = {}

    def __iter__(self) -> Iterator[Request]:
        return iter(self._by_step.values())

    def add(self, entry: dict[str, Any], meta: dict[str, Any]) -> None:
        """Add an entry of an action. ``meta``: that of the recording."""
        t, body, step = entry["t"], entry["object"], (str(entry["object"].get("step", "")), str(entry.get("node", "")))
        params = body.get("params") or {}
        if body.get("phase") == "begin":
            namespace = str(params.get("namespace", ""))
            namespace = str(meta.get(_WORKLOAD, "")) if namespace == _WORKLOAD else namespace
            kind, name = str(params.get("kind", "")).lower(), str(params.get("name", ""))
            self._by_step[step] = Request(t, kind=kind, namespace=namespace, name=name)
        elif step in self._by_step:
            _complete(self._by_step[step], t, body)


def _complete(request: Request, t: float, body: dict[str, Any]) -> None:
    evidence = body.get("evidence") or {}
    if body.get("phase") == "returned" and body.get("delivery") == "answered":
        request.answered = t
        pods: Iterable[Any] = evidence.get("pods") or []
        request.uids |= {str(pod["uid"]) for pod in pods if pod.get("uid") and pod.get("status") == _CREATED}
    elif body.get("phase") == "proved" and request.proved is None:
        request.proved = t


_CREATED = 201  # the answer to an eviction that was granted
