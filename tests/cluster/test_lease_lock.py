"""The cluster's lock against an API server that stores Leases: who acquires it, what is noted, and who stops."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from msgspec import structs

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.lease import ABORT, LEASE_DURATION, PROCESS
from chaos.cluster.lease_lock import ClusterLock, Identity
from chaos.core.clock.system import uptime
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.labels import RUN_LABEL
from chaos.core.ports import Response
from chaos.core.store.process_lock import current_identity
from tests.kit.fakes import FakeKube
from tests.kit.processes import until

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Leases(FakeKube):
    """Stores one Lease; a write must name the version that it was made for."""

    def __init__(self) -> None:
        super().__init__({})
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.broken: Response | KubeUnreachable | None = None
        self.lose_next_answer = False

    def answer(self, method: str, path: str, body: Any) -> Response:
        if isinstance(self.broken, KubeUnreachable):
            raise self.broken
        if self.broken:
            return self.broken
        assert path.startswith(PATH)
        if method == "POST":
            return self._store(body) if self.lease is None else self._status(409)
        if self.lease is None:
            return self._status(404)
        given = (body or {}).get("preconditions" if method == "DELETE" else "metadata", {}).get("resourceVersion")
        if method in {"PUT", "DELETE"} and given != self.lease["metadata"]["resourceVersion"]:
            return self._status(409)
        if method == "DELETE":
            self.lease = None
            return self._status(200)
        return self._store(body) if method == "PUT" else Response(200, json.dumps(self.lease).encode(), {})

    def _store(self, lease: dict[str, Any]) -> Response:
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        if self.lose_next_answer:
            self.lose_next_answer = False
            raise KubeUnreachable("reset", "the answer was lost")
        return Response(200, json.dumps(self.lease).encode(), {})

    def _status(self, code: int) -> Response:
        return Response(code, b'{"message": "no"}', {})

    def annotate(self, **annotations: str) -> None:
        assert self.lease
        self._store({**self.lease, "metadata": {**self.lease["metadata"], "annotations": annotations}})

    def steal(self, holder: str) -> None:
        spec = self.spec() | {"holderIdentity": holder, "leaseTransitions": self.spec()["leaseTransitions"] + 1}
        assert self.lease
        self._store({**self.lease, "spec": spec, "metadata": {**self.lease["metadata"], "annotations": {}}})

    def spec(self) -> dict[str, Any]:
        assert self.lease
        return dict(self.lease["spec"])


def lock(
    kube: Leases, name: str, process: str = "", wall: float | None = None, ended: tuple[str, ...] = ()
) -> ClusterLock:
    about = {RUN_LABEL: f"run of {name}"} | ({PROCESS: process} if process else {})
    now = 1000.0 if wall is None else wall
    return ClusterLock(kube, "kube-system", Identity(name, about), lambda: now, ended=ended)


def silent(text: str) -> None:
    raise AssertionError(text)


def test_the_second_is_refused_with_the_name_of_the_holder() -> None:
    kube = Leases()
    first, second = lock(kube, "ann"), lock(kube, "bob")
    first.acquire(silent)
    with pytest.raises(Refused, match=r"cluster in use by ann \(run run of ann\)"):
        second.acquire(silent)
    first.release()
    assert kube.lease is None
    second.acquire(silent)
    assert kube.spec()["holderIdentity"] == "bob"
    second.release()


def test_a_holder_that_died_on_this_machine_is_replaced_at_once() -> None:
    kube = Leases()
    process = current_identity()
    assert process
    dead = lock(kube, "ann", structs.replace(process, start_ticks=process.start_ticks - 1).encode())
    assert dead._try_acquire(None)
    heir = lock(kube, "bob", process.encode(), ended=("ann",))
    heir.acquire(silent)
    assert (heir.fence, kube.spec()["leaseTransitions"]) == (2, 2)
    with pytest.raises(Aborted, match="the cluster's lock was taken by bob"):
        dead.renew()
    with pytest.raises(Aborted, match="was taken by bob"):
        dead.check()
    dead.release()
    assert kube.spec()["holderIdentity"] == "bob"
    heir.release()


@pytest.mark.parametrize(("ended", "is_running"), [((), False), (("eve",), False), (("ann",), True)])
def test_a_clone_of_the_holders_machine_does_not_take_its_lock(ended: tuple[str, ...], is_running: bool) -> None:
    """There, too, its process is missing; but no process has ended there as ``ann``. And the other way round."""
    kube, process = Leases(), current_identity()
    assert process
    holder = process if is_running else structs.replace(process, start_ticks=process.start_ticks - 1)
    assert lock(kube, "ann", holder.encode())._try_acquire(None)
    with pytest.raises(Refused, match="cluster in use by ann"):
        lock(kube, "bob", process.encode(), ended=ended).acquire(silent)


@pytest.mark.parametrize(("status", "is_free"), [(200, True), (404, True), (409, False), (403, False), (0, False)])
def test_whether_the_lock_was_released_is_known(monkeypatch: pytest.MonkeyPatch, status: int, is_free: bool) -> None:
    kube = Leases()
    holder = lock(kube, "ann")
    assert holder._try_acquire(None)
    respond = kube.request

    def request(method: str, *arguments: Any, **options: Any) -> Response:
        if method != "DELETE":
            return respond(method, *arguments, **options)
        if not status:
            raise NodefallError("no answer")
        return Response(status, b"{}", {})

    monkeypatch.setattr(kube, "request", request)
    assert holder.release() is is_free


def test_a_holder_that_seems_dead_is_observed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the watcher's own clock, as the holder's may be wrong; it is alive if it renews meanwhile."""
    monkeypatch.setattr("chaos.cluster.lease_lock.POLL_PERIOD", 0.01)
    kube = Leases()
    silent_one = lock(kube, "ann", wall=1000.0)
    assert silent_one._try_acquire(None)
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        silent_one.renew()

    with pytest.raises(Refused, match="cluster in use by ann"):
        lock(kube, "bob", wall=1000.0 + LEASE_DURATION + 1).acquire(note)
    assert notes == ["waiting up to 30 s for the lock of ann, unless it renews it"]


def test_a_holder_that_does_not_renew_for_the_whole_duration_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.cluster.lease_lock.POLL_PERIOD", 0.001)
    moments = iter(range(0, 10_000, 7))
    monkeypatch.setattr("chaos.cluster.lease_lock.uptime", lambda: float(next(moments)))
    kube, notes = Leases(), list[str]()
    assert lock(kube, "ann")._try_acquire(None)
    heir = lock(kube, "bob", wall=1000.0 + LEASE_DURATION + 1)
    heir.acquire(notes.append)
    assert kube.spec()["holderIdentity"] == "bob"
    assert len(notes) == 1
    heir.release()


def test_a_holder_that_was_stopped_too_long_renews_before_it_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = Leases()
    holder = lock(kube, "ann")
    assert holder._try_acquire(None)
    holder.check()
    version = kube.version
    now = uptime()
    monkeypatch.setattr("chaos.cluster.lease_lock.uptime", lambda: now + 25.0)
    holder.check()
    assert kube.version == version + 1
    kube.broken = KubeUnreachable("timeout", "no answer in time")
    monkeypatch.setattr("chaos.cluster.lease_lock.uptime", lambda: now + 50.0)
    assert not holder.renew()
    with pytest.raises(Aborted, match="could not be renewed: no answer in time"):
        holder.check()


def test_without_permission_the_lock_is_refused() -> None:
    kube = Leases()
    kube.broken = Response(403, b'{"message": "leases is forbidden"}', {})
    with pytest.raises(Refused, match="leases is forbidden") as caught:
        lock(kube, "ann").acquire(silent)
    assert "nodefall rbac" in caught.value.hint


def test_a_request_to_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.cluster.lease_lock.POLL_PERIOD", 0.01)
    kube, reasons = Leases(), list[str]()
    holder = lock(kube, "ann")
    holder.on_abort = reasons.append
    holder.acquire(silent)
    kube.annotate(**{ABORT: "wrong cluster"})
    until(lambda: reasons)
    assert reasons[0] == "wrong cluster"
    holder.renew()
    assert kube.lease
    assert kube.lease["metadata"]["annotations"][ABORT] == "wrong cluster"
    holder.release()


def test_a_deleted_lock_is_lost() -> None:
    kube = Leases()
    holder = lock(kube, "ann")
    assert holder._try_acquire(None)
    kube.lease = None
    with pytest.raises(Aborted, match="the cluster's lock was deleted"):
        holder.renew()


def test_a_live_process_and_one_of_a_former_version_keep_their_lock() -> None:
    """The annotation of 0.2.0 named a machine, which proves nothing."""
    process = current_identity()
    assert process
    for written in ({PROCESS: process.encode()}, {"nodefall.dev/machine": "0123456789abcdef"}, {PROCESS: "{}"}):
        kube = Leases()
        assert lock(kube, "ann")._try_acquire(None)
        kube.annotate(**written)
        with pytest.raises(Refused, match="cluster in use by ann"):
            lock(kube, "bob", process.encode()).acquire(silent)


def test_a_lost_lock_is_noticed_between_two_renewals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.cluster.lease_lock.POLL_PERIOD", 0.01)
    kube, losses = Leases(), list[str]()
    holder = lock(kube, "ann")
    holder.on_loss = losses.append
    holder.acquire(silent)
    kube.steal("eve")
    until(lambda: losses)
    assert losses == ["the cluster's lock was taken by eve"]
    assert holder.blocked() == losses[0]
    with pytest.raises(Aborted, match="taken by eve"):
        holder.check()
    holder.release()
    assert kube.spec()["holderIdentity"] == "eve"


def test_a_lock_that_was_lost_is_held_again_for_the_undo_but_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the other has not renewed it for its whole duration."""
    monkeypatch.setattr("chaos.cluster.lease_lock.POLL_PERIOD", 0.001)
    now = [uptime()]
    monkeypatch.setattr("chaos.cluster.lease_lock.uptime", lambda: now[0])
    kube, pauses = Leases(), list[float]()
    holder = lock(kube, "ann")
    assert holder._try_acquire(None)
    kube.steal("eve")
    with pytest.raises(Aborted, match="taken by eve"):
        holder.renew()
    begun = now[0]

    def pause() -> None:
        now[0] += 1.0
        pauses.append(now[0] - begun)
        if len(pauses) == 20:
            kube.steal("eve")  # renews it

    assert holder.regain(pause) == ""
    assert 20 + LEASE_DURATION < len(pauses) < 20 + LEASE_DURATION + 4
    assert kube.spec()["holderIdentity"] == "ann"
    assert (holder.blocked(), holder.loss) == ("", "the cluster's lock was taken by eve")
    for operation in (holder.check, holder.renew):
        with pytest.raises(Aborted, match="taken by eve"):
            operation()
    holder.release()
    assert kube.lease is None


def test_a_lock_that_another_process_keeps_is_not_held_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.cluster.lease_lock.POLL_PERIOD", 0.001)
    now = [uptime()]
    monkeypatch.setattr("chaos.cluster.lease_lock.uptime", lambda: now[0])
    kube = Leases()
    holder = lock(kube, "ann")
    assert holder._try_acquire(None)
    kube.steal("eve")
    with pytest.raises(Aborted):
        holder.renew()

    def pause() -> None:
        now[0] += 8.0
        kube.steal("eve")

    assert holder.regain(pause) == "the cluster's lock was taken by eve"
    assert kube.spec()["holderIdentity"] == "eve"


def test_a_lock_whose_answer_was_lost_is_not_left_behind() -> None:
    kube = Leases()
    holder = lock(kube, "ann")
    kube.lose_next_answer = True
    with pytest.raises(KubeUnreachable):
        holder.acquire(silent)
    assert kube.spec()["holderIdentity"] == "ann"
    holder.release()
    assert kube.lease is None


def test_a_suspended_machine_counts_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 3605.0}.__getitem__)
    assert uptime() == 3605.0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert uptime() == 5.0
