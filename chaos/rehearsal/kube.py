"""The API server, kubelets and control plane of a rehearsal, by call; and its observers.

Every change is recorded as the store makes it, at its exact time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from chaos.cluster.api import with_field_manager
from chaos.cluster.errors import REFUSED, TIMEOUT, KubeUnreachable
from chaos.cluster.observers.cluster import RECORDED
from chaos.cluster.reads import METADATA_LIST
from chaos.cluster.watch_codec import DecodedObject, WatchCodec
from chaos.core.api_path import refuse_unsafe_path
from chaos.core.errors import Refused
from chaos.core.kube import RESOURCES, Node
from chaos.core.labels import FIELD_MANAGER
from chaos.core.ports import Clock, Observer, Response, Sink
from chaos.core.recording import LIST, Currency, EntryKind, RecordingEntry
from chaos.core.time_bounds import ClockOffset
from chaos.lab.facade import Answer, Change, DirectLab, Task
from chaos.rehearsal.turns import Turns

CONTROLLERS = "https://127.0.0.1:10257"  # of kube-controller-manager
_REQUEST_TIMEOUT = 30.0  # seconds
_KUBELET_TIMEOUT = 5.0


class DirectKube:
    """Implements ``chaos.cluster.api.ClusterApi``."""

    server = "https://127.0.0.1:6443"
    ca_digest = ""
    risks: tuple[str, ...] = ()

    def __init__(self, lab: DirectLab, turns: Turns) -> None:
        self._lab, self._turns = lab, turns
        self._headers = {"Authorization": f"Bearer {lab.token}", "User-Agent": FIELD_MANAGER}

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = _REQUEST_TIMEOUT,
        accept: str = "application/json",
    ) -> Response:
        """One request and its response, whatever the status. Raises KubeUnreachable after ``timeout``."""
        refuse_unsafe_path(path)
        pairs = (with_field_manager(method, query) or {}).items()
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._headers, "Accept": accept}
        task = self._lab.request(method, path, headers, pairs, data, content_type)
        return self._response(task, self.server, timeout)

    def metadata(self, path: str, query: Mapping[str, str]) -> Response:
        """See :class:`chaos.cluster.api.WatchApi`."""
        return self.request("GET", path, query, accept=METADATA_LIST)

    def stream(self, path: str, query: Mapping[str, str]) -> NoReturn:  # noqa: ARG002 - of the port
        """Raises Refused: what changes is recorded as it happens, without a watch."""
        raise Refused(f"watch of {path}: a rehearsal has no watches", hint="read lists, or use the recorded entries")

    def probe(self, timeout: float) -> float | None:
        """See :class:`chaos.cluster.api.WatchApi`; the server is ready, and has the time of the run."""
        self.request("GET", "/readyz", timeout=timeout)
        return None

    def kubelet(self, address: str, port: int, path: str) -> Response:
        """GET from a kubelet's own port. Raises KubeUnreachable."""
        where = f"https://{address}:{port}{path}"
        task = self._lab.read_kubelet(address, port, path, self._headers)
        if task is None:
            raise KubeUnreachable(REFUSED, f"{where}: connection refused", hint="check the server and its port")
        return self._response(task, where, _KUBELET_TIMEOUT)

    def set_kubelet_certificate_source(self, certificate: Callable[[str], str]) -> None:
        """No-op: kubelets are reached by call."""

    def component(self, url: str) -> Response:
        """GET from kube-controller-manager, at ``CONTROLLERS``."""
        return self._response(self._lab.read_controllers(urlsplit(url).path, self._headers), url, _KUBELET_TIMEOUT)

    def _response(self, task: Task[Answer], where: str, timeout: float) -> Response:
        if not task.done:
            self._turns.block(self._lab.sim.now + timeout, lambda end: task.add_done_callback(lambda _: end()))
        if not task.done:
            task.cancel()
            raise KubeUnreachable(TIMEOUT, f"{where}: timed out waiting for a response", sent=True)
        answer = task.result()
        return Response(answer.status, answer.body, answer.headers)


_ALWAYS = 253402300799.0  # seconds since the epoch: the end of the year 9999
_CURRENT = msgspec.Raw(msgspec.json.encode(Currency(_ALWAYS, complete=_ALWAYS)))


class StoreObserver:
    """Records every object that exists, and then every change."""

    name = "store"

    def __init__(self, lab: DirectLab, clock: Clock) -> None:
        self._lab, self._clock = lab, clock
        self._sink: Sink | None = None
        self._codecs = {plural: WatchCodec(RESOURCES[plural]) for plural in RECORDED}

    def start(self, sink: Sink) -> None:
        self._sink = sink
        for plural in RECORDED:
            for obj in self._lab.objects(plural):
                self._emit(plural, LIST, obj)
            sink(RecordingEntry(self._clock.now(), EntryKind.CURRENT, plural, _CURRENT))
        self._lab.subscribe(self._on_change, *RECORDED)

    def stop(self) -> None:
        self._sink = None

    def has_synced(self) -> bool:
        return True

    def _on_change(self, change: Change) -> None:
        if self._sink:
            self._emit(change.plural, change.type, change.object)

    def _emit(self, plural: str, type_: str, obj: Mapping[str, object]) -> None:
        assert self._sink is not None  # noqa: S101 - both callers have looked
        self._sink(self._decode(plural, obj).entry(self._clock.now(), plural, type_))

    def _decode(self, plural: str, obj: Mapping[str, object]) -> DecodedObject:
        try:
            value = msgspec.convert(obj, RESOURCES[plural].type)
        except msgspec.ValidationError:  # as an observer over the network, which says what it could not read
            return self._codecs[plural].decode_object(msgspec.Raw(msgspec.json.encode(obj)))
        return DecodedObject(value.metadata, value)


class _Health:
    """The server is always available, and has the time of the run."""

    reason = ""

    def offsets(self) -> dict[str, ClockOffset]:
        return {"the API server": ClockOffset(0.0, 0.0)}


class _Nodes:
    def __init__(self, lab: DirectLab) -> None:
        self._lab = lab

    def node(self, name: str) -> Node | None:
        found = self._lab.cluster.store.get("nodes", "", name)
        return msgspec.convert(found, Node) if found else None


class _Exact:
    """What is recorded is current at every moment."""

    def prove_at(self, moments: Iterable[float]) -> None:
        """No-op."""

    def watch_closely(self) -> AbstractContextManager[None]:
        return nullcontext()


class DirectObservers:
    """Implements ``chaos.cluster.observers.plugin.ObservedCluster``."""

    def __init__(self, lab: DirectLab, clock: Clock) -> None:
        self.health, self.nodes, self.currency = _Health(), _Nodes(lab), _Exact()
        self.watches: Sequence[Observer] = (StoreObserver(lab, clock),)
