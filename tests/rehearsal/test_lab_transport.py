"""The product's API client on a lab in its process: watches, their ends and their time-outs in simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import pytest

from chaos.cluster.client import ApiClient
from chaos.cluster.errors import REFUSED, RESET, TIMEOUT, KubeRejected, KubeUnreachable
from chaos.cluster.watch_codec import split_lines
from chaos.core.ports import Clock
from chaos.lab.facade import LabSpec
from chaos.lab.spec import ApiMisbehaviour, NodeSpec
from chaos.rehearsal.connection import DirectConnection, connect_directly
from tests.kit.disturbance import DisturbancePlan
from tests.kit.lab_transport import lab_client

NODES = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1")]
PATH = "/api/v1/namespaces/default/configmaps"


@dataclass
class Bench:
    direct: DirectConnection
    api: ApiClient

    @property
    def clock(self) -> Clock:
        return self.direct.ports.clock

    def create(self, name: str, delay: float) -> None:
        def create() -> None:
            self.direct.lab.cluster.create_object("configmaps", {"metadata": {"name": name, "namespace": "default"}})

        self.direct.lab.sim.after(delay, create)

    def version(self) -> str:
        return str(msgspec.json.decode(self.api.request("GET", PATH).body)["metadata"]["resourceVersion"])

    def watch(self, version: str, seconds: int = 20) -> list[tuple[float, str, str]]:
        """When which event came about what, until the watch ends, in seconds from its start."""
        begin, found = self.clock.now(), []
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        with self.api.stream(PATH, query) as chunks:
            for line in split_lines(chunks):
                event = msgspec.json.decode(line)
                name = event["object"]["metadata"].get("name", "") if event["type"] != "ERROR" else ""
                found.append((round(self.clock.now() - begin, 3), event["type"], name))
        return found


@contextmanager
def bench(*misbehaviours: ApiMisbehaviour, late_seed: int | None = None) -> Iterator[Bench]:
    with connect_directly(LabSpec(nodes=NODES, api_misbehaviours=list(misbehaviours)), None) as direct:
        clock = direct.ports.clock
        plan = DisturbancePlan(clock.now, late_seed) if late_seed is not None else None
        yield Bench(direct, lab_client(direct.lab, clock.threads, plan))  # type: ignore[arg-type]


def test_a_watch_has_what_is_newer_until_its_end() -> None:
    with bench() as it:
        it.create("before", 0.0)
        it.clock.sleep(1.0)
        version = it.version()
        it.create("one", 3.0)
        it.create("two", 5.0)
        begin = it.clock.now()
        assert it.watch(version) == [(3.0, "ADDED", "one"), (5.0, "ADDED", "two")]
        assert it.clock.now() - begin == pytest.approx(20.0)
        assert it.watch(version, 1) == [(0.0, "ADDED", "one"), (0.0, "ADDED", "two")], "resumed, all comes again"


def test_a_watch_is_late_as_planned_and_keeps_the_order_of_an_object() -> None:
    with bench(late_seed=5) as it:
        version = it.version()
        for number in range(20):
            it.create(f"c{number}", 1.0 + number)
        first = it.watch(version, 30)
        assert {name for _, _, name in first} == {f"c{number}" for number in range(20)}, "what is late still comes"
        assert any(t > 1.0 + int(name[1:]) for t, _, name in first)


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/namespaces/default/nothing"])
def test_a_watch_may_be_refused(path: str) -> None:
    with bench() as it, pytest.raises(KubeRejected) as refused, it.api.stream(path, {"watch": "true"}):
        pass
    assert refused.value.status == 404


def test_a_compacted_version_is_gone() -> None:
    with bench("gone") as it:
        version = it.version()
        it.create("one", 1.0)
        it.clock.sleep(2.0)
        assert [type_ for _ in range(10) for _, type_, _ in it.watch(version, 1) if type_ == "ERROR"] != []


@pytest.mark.parametrize("fault", ["cut", "half-open"])
def test_a_watch_that_breaks(fault: ApiMisbehaviour) -> None:
    """A connection that is cut is noticed at once, one that is silent after 90 s."""
    with bench(fault) as it:
        version = it.version()
        for number in range(200):
            it.create(f"c{number}", 0.1 * number)
        begin = it.clock.now()
        with pytest.raises(KubeUnreachable) as broken:
            it.watch(version, 280)
        silent = it.clock.now() - begin >= 90.0
        assert (broken.value.kind, silent) == ((RESET, False) if fault == "cut" else (TIMEOUT, True))


def test_a_torn_event_is_half_a_line_at_the_end() -> None:
    with bench("torn") as it:
        version = it.version()
        for number in range(200):
            it.create(f"c{number}", 0.1 * number)
        with pytest.raises(Exception, match="ended in the middle"):
            it.watch(version, 280)


def test_another_thread_ends_a_watch() -> None:
    with bench() as it:
        stream = it.api.stream(PATH, {"watch": "true", "resourceVersion": it.version()})
        it.direct.lab.sim.after(5.0, stream.abort)
        begin = it.clock.now()
        with pytest.raises(KubeUnreachable, match="aborted"), stream as chunks:
            list(chunks)
        assert it.clock.now() - begin == pytest.approx(5.0)


def test_time_outs_are_in_simulated_time() -> None:
    with bench("slow-answers") as it:
        begin = it.clock.now()
        assert it.api.metadata(PATH, {}).status == 200
        assert 1.0 <= it.clock.now() - begin <= 15.0
        begin = it.clock.now()
        with pytest.raises(KubeUnreachable) as late:
            it.api.request("GET", "/readyz", timeout=0.5)
        assert late.value.kind == TIMEOUT
        assert it.clock.now() - begin == pytest.approx(0.5)


def test_a_kubelet_that_does_not_listen_refuses() -> None:
    with bench() as it:
        machine = it.direct.lab.cluster.machines["w1"]
        assert it.api.kubelet(machine.address, machine.kubelet_port, "/healthz").body == b"ok"
        machine.power_off()
        with pytest.raises(KubeUnreachable) as refused:
            it.api.kubelet(machine.address, machine.kubelet_port, "/healthz")
        assert refused.value.kind == REFUSED


def test_the_time_of_the_server_is_known() -> None:
    with bench() as it:
        date = it.api.probe(2.0)
        assert date is not None
        assert 0.0 <= it.clock.now() - date < 1.0
