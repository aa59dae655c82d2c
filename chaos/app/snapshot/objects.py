"""Lists of a cluster's objects, page by page, into a snapshot; and notes of what it lacks, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.reads import iter_pages
from chaos.cluster.snapshot.anonymize import API_GROUPS
from chaos.cluster.snapshot.document import Missing
from chaos.cluster.snapshot.fields import visible_flags
from chaos.cluster.snapshot.kinds import EVENTS, KINDS, UNMODELLED, Kind
from chaos.cluster.snapshot.measure import Measurements
from chaos.cluster.snapshot.projection import Convert, Leaf, Projector, Tree
from chaos.cluster.watch_codec import DECODE_ERRORS, WatchCodec
from chaos.core.errors import NodefallError
from chaos.core.files import SnapshotFile
from chaos.core.kube import RESOURCES, Node
from chaos.core.ports import KubeApi

_SHOWN = 8
_REASONS = {401: "not authenticated", 403: "not permitted", 404: "not served by this cluster"}


class Notes:
    """Collects what is missing. ``hide`` replaces names; None in a snapshot that is not anonymized."""

    def __init__(self, hide: Callable[[str], str] | None = None) -> None:
        self._hide = hide
        self.missing: list[Missing] = []

    def add(self, what: str, why: str, *, detail: str = "", is_object: bool = False) -> None:
        """Note what is missing, in words of nodefall; ``detail`` is of the cluster."""
        shown = f"{why} ({detail})" if detail and self._hide is None else why
        self.missing.append(Missing(what, shown, is_object))

    def add_named(self, what: str, name: str, why: str) -> None:
        """Note what is missing of something with a name of the cluster."""
        self.missing.append(Missing(f"{what} {self._hide(name) if self._hide else name}", why))

    def add_error(self, what: str, error: NodefallError, effect: str, *, is_object: bool = False) -> None:
        """Note an error of the API server."""
        self.add(what, f"{_reason(error)}; {effect}", detail=error.message, is_object=is_object)

    def add_errors(self, what: str, errors: Iterable[tuple[str, NodefallError]], effect: str) -> None:
        """Note errors of several nodes: one line for each reason."""
        by_reason: dict[str, list[tuple[str, NodefallError]]] = {}
        for node, error in errors:
            by_reason.setdefault(_reason(error), []).append((node, error))
        for reason, found in sorted(by_reason.items()):
            names = [self._hide(node) if self._hide else node for node, _ in found]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            self.add(f"{what} of {', '.join(names[:_SHOWN])}{more}", f"{reason}; {effect}", detail=found[0][1].message)

    def add_unknown_fields(self, plural: str, unknown: Counter[str]) -> None:
        """Note fields that this version of nodefall does not know."""
        if unknown:
            names = sorted(unknown)
            shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
            self.add(f"{len(names)} unknown fields of {plural}", "not known to this version", detail=shown)


def _reason(error: NodefallError) -> str:
    if isinstance(error, KubeRejected):
        return _REASONS.get(error.status, f"status {error.status}" if error.status != 200 else "invalid response")
    return f"not reachable ({error.kind})" if isinstance(error, KubeUnreachable) else "not readable"


_PAGES = WatchCodec(RESOURCES["pods"])  # pages of all kinds are alike
_DEFAULT_SCHEDULER = "default-scheduler"
_SHOWN_GROUPS = 5  # names in a note
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_node = msgspec.json.Decoder(Node).decode


class ObjectCollector:
    """Reads the kinds of a snapshot. ``nodes``: as far as they could be decoded, for what is read of their machines."""

    def __init__(self, kube: KubeApi, file: SnapshotFile, notes: Notes, convert: Mapping[Leaf, Convert]) -> None:
        self._kube, self._file, self._notes, self._convert = kube, file, notes, convert
        self.nodes: list[Node] = []
        self.measured = Measurements()
        self.flags: dict[str, dict[str, Any]] = {}
        self._schedulers: Counter[str] = Counter()
        self._errors: list[NodefallError] = []

    def collect(self, progress: Callable[[str], None]) -> None:
        """Read events and all kinds. Raises NodefallError if no kind could be read."""
        self._read_events()
        for kind in KINDS.values():
            self._read_kind(kind)
            if number := self._file.counts[kind.plural]:
                progress(f"{number} {kind.plural}")
        if len(self._errors) == len(KINDS):
            raise self._errors[0]
        self._note_schedulers()
        self._note_flags()
        self._note_unmodelled()

    def _read_events(self) -> None:
        try:
            for raw, _ in self._items(EVENTS):
                self.measured.add_event(_decode_object(raw))
        except NodefallError as error:
            self._notes.add_error("events", error, "times to pull and to end are measured without them")

    def _read_kind(self, kind: Kind) -> None:
        projector = Projector(kind.plural, kind.tree, self._convert)
        try:
            _, damaged = self._read_list(kind.plural, kind.path, projector)
        except NodefallError as error:
            self._errors.append(error)
            self._notes.add_error(kind.plural, error, "the copy has none", is_object=True)
            return
        if damaged:
            self._notes.add(kind.plural, f"{damaged} objects cannot be decoded", is_object=True)
        self._notes.add_unknown_fields(kind.plural, projector.unknown)

    def _read_list(self, plural: str, path: str, projector: Projector) -> tuple[int, int]:
        """Write the objects of a collection. The number of all, and of those that cannot be decoded.

        Raises NodefallError.
        """
        number = damaged = 0
        self._file.begin(plural)
        try:
            for raw, restarts in self._items(path):
                if restarts:
                    self._restart(plural)
                    number = damaged = 0
                number += 1
                damaged += not self._add(plural, projector, raw)
        except NodefallError:
            self._file.begin(plural)  # half a list is a wrong cluster
            raise
        return number, damaged

    def _restart(self, plural: str) -> None:
        """Discard what was listed of a kind."""
        self._file.begin(plural)
        if plural == "nodes":
            self.nodes.clear()
        elif plural == "pods":
            self.measured.forget_pods()
            self._schedulers.clear()

    def _items(self, path: str) -> Iterator[tuple[msgspec.Raw, bool]]:
        """Objects of a collection, each with whether the list restarts with it. Raises NodefallError."""
        for page, restarts in iter_pages(self._kube, path, _PAGES):
            for index, raw in enumerate(page.items or ()):
                yield raw, restarts and index == 0

    def _add(self, plural: str, projector: Projector, raw: msgspec.Raw) -> bool:
        """Add an object; False if it is none."""
        try:
            obj = _decode_object(raw)
        except DECODE_ERRORS:
            return False
        if not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
            return False
        if plural == "nodes":
            self._add_node(raw)
        elif plural == "pods":
            self._add_pod(obj)
        line = {"kind": plural, "object": projector.project(obj)}
        self._file.add(plural, msgspec.json.encode(line))
        return True

    def _add_node(self, raw: msgspec.Raw) -> None:
        try:
            self.nodes.append(_decode_node(raw))
        except DECODE_ERRORS as error:
            self._notes.add("kubelet of a node", "its Node cannot be decoded", detail=str(error))

    def _add_pod(self, pod: dict[str, Any]) -> None:
        spec = pod.get("spec")
        if isinstance(spec, dict):
            self._schedulers[str(spec.get("schedulerName") or _DEFAULT_SCHEDULER)] += 1
            if found := visible_flags(pod):
                self.flags.setdefault(*found)
            self.measured.add_pod(pod)

    def _note_schedulers(self) -> None:
        del self._schedulers[_DEFAULT_SCHEDULER]
        for name, number in sorted(self._schedulers.items()):
            self._notes.add_named(
                "scheduler", name, f"{number} pods: the lab has no scheduler other than {_DEFAULT_SCHEDULER}"
            )

    def _note_flags(self) -> None:
        for component in ("kube-controller-manager", "kube-apiserver"):
            if component not in self.flags:
                self._notes.add(f"flags of {component}", "no pod of kube-system shows them; the defaults are assumed")

    def _note_unmodelled(self) -> None:
        """Note what the lab does not model: custom resources, autoscalers, webhooks."""
        groups = self._custom_groups()
        if groups:
            shown = ", ".join(groups[:_SHOWN_GROUPS]) + (", ..." if len(groups) > _SHOWN else "")
            why = "the lab has no operators"
            self._notes.add(f"custom resources of {len(groups)} API groups", why, detail=shown)
        for path, kind in UNMODELLED.items():
            try:
                number = self._count(path) if kind.tree is None else self._list(path, kind.tree)
            except (NodefallError, *DECODE_ERRORS, KeyError, TypeError, AttributeError):
                self._notes.add(kind.what, "their number cannot be read")
                continue
            if number:
                self._notes.add(f"{number} {kind.what}", f"the lab has none: {kind.effect}")

    def _list(self, path: str, tree: Tree) -> int:
        """Write the objects of a collection; their number, 0 for an unknown kind. Raises NodefallError."""
        plural = path.rpartition("/")[2]
        projector = Projector(plural, tree, self._convert)
        try:
            number, damaged = self._read_list(plural, path, projector)
        except KubeRejected as error:
            if error.status != 404:
                raise
            return 0
        if damaged:
            self._file.begin(plural)
            raise NodefallError(f"{damaged} objects of {plural} cannot be decoded")
        self._notes.add_unknown_fields(plural, projector.unknown)
        return number

    def _custom_groups(self) -> list[str]:
        """API groups that Kubernetes does not serve by itself, by name; autoscaling.k8s.io is one of them."""
        try:
            response = self._kube.request("GET", "/apis")
            names = [str(group["name"]) for group in msgspec.json.decode(response.body)["groups"]]
        except (NodefallError, *DECODE_ERRORS, KeyError, TypeError):
            self._notes.add("API groups", "the list of API groups cannot be read")
            return []
        return sorted(name for name in names if "." in name and name not in API_GROUPS)

    def _count(self, path: str) -> int:
        """Number of objects of a collection; 0 for an unknown kind. Raises for what cannot be read or decoded."""
        response = self._kube.request("GET", path, {"limit": "1"})
        if response.status == 404:
            return 0
        document = msgspec.json.decode(response.body) if response.status == 200 else {}
        return len(document["items"] or ()) + int(document["metadata"].get("remainingItemCount") or 0)
