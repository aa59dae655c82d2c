"""Host observer: its samples, and its blind windows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from unittest.mock import Mock

import msgspec

import chaos.faults.readings
from chaos.core.command import Delivery, Outcome, PowerState
from chaos.core.fact import HostFact
from chaos.core.recording import RecordingEntry
from chaos.core.registry import discover
from chaos.core.time_bounds import ClockOffset
from chaos.machines.observer import OBSERVER, OPTIONAL_FACTS, PERIOD, HostObserver
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeSession, answered

FACTS = discover(chaos.faults.readings, HostFact)
BOOT = str(FACTS["boot-id"].command)
B1, B2 = "f4dc55dd-fb0c-4e07-97b3-1883fa27ab8b", "0d3c1a52-9f1b-4b1e-8f3a-5f1f9e1c2d3e"  # boot IDs
KNOWN: dict[str, object] = {
    "runtime-socket": "/run/containerd/containerd.sock",
    "runtime-client": "/usr/bin/crictl",
    "kubelet-unit": "kubelet.service",
}
CONTAINERS = str(FACTS["containers"].command_for(KNOWN))
MADE_OF = {
    str(FACTS["runtime-socket"].command): answered("/run/containerd/containerd.sock\n"),
    str(FACTS["runtime-client"].command): answered("/usr/bin/crictl\n", 1),
    str(FACTS["kubelet-unit"].command): answered("Id=kubelet.service\nLoadState=loaded\nActiveState=active\n"),
}


class Script:
    """A clock that does one thing a round and stops the watch after the last."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.lines: list[RecordingEntry] = []
        self.done = threading.Event()

    def run(
        self,
        power: FakePower | None,
        answers: Mapping[str, Outcome | Callable[[], Outcome]],
        rounds: list[dict[str, object]],
        extras: Sequence[str] = (),
    ) -> list[RecordingEntry]:
        session = FakeSession(dict(answers))
        hosts = Hosts(lambda _: session, lambda _: power, FakeKube({}), FACTS, self.clock)
        watch = self.watch = HostObserver(hosts, self.clock, ["n1"], ["machine", "boot-id"], extras)
        for number, change in enumerate(rounds, 1):
            self.clock.agenda.append((1000.0 + number * PERIOD, partial(self._turn, change, power, session)))
        self.clock.agenda.append((1000.0 + (len(rounds) + 1) * PERIOD, partial(self._end, watch)))
        watch.start(self.lines.append)
        assert self.done.wait(10)
        assert watch.has_synced()
        return self.lines

    def offsets(self) -> dict[str, ClockOffset]:
        return self.watch.offsets()

    def _end(self, watch: HostObserver) -> None:
        watch.stop()
        self.done.set()

    def _turn(self, change: dict[str, object], power: FakePower | None, session: FakeSession) -> None:
        if power is not None and "power" in change:
            power.value = str(change["power"])
        for name, key in (("boot-id", BOOT), ("containers", CONTAINERS)):
            if name in change:
                answer = change[name]
                session.answers[key] = answer if isinstance(answer, Outcome) else answered(str(answer))


def summary(lines: list[RecordingEntry]) -> list[tuple[str, str, object]]:
    return [(line.kind, line.type, msgspec.json.decode(line.object)) for line in lines]


def test_a_machine_that_goes_off_and_comes_back() -> None:
    lines = Script().run(
        FakePower("on"), {BOOT: answered(f"{B1}\n")}, [{"power": "off"}, {}, {"power": "on", "boot-id": f"{B2}\n"}]
    )
    seen = summary(lines)
    assert seen[:2] == [("host", "machine", "on"), ("host", "boot-id", B1)]
    off = seen.index(("host", "machine", "off"))
    window = {"from": 1000.0 + PERIOD, "to": None, "reason": "the machine is off"}
    assert seen[off + 1] == ("blind", "host@n1", window), "the facts of a machine that is off are not read"
    closed = next(s for s in seen[off + 2 :] if s[0] == "blind")
    assert isinstance(closed[2], dict)
    assert closed[2]["to"] == 1000.0 + 3 * PERIOD
    assert ("host", "boot-id", B2) in seen[seen.index(closed) - 1 :]


class FakeContainer(FakePower):
    """A power control that reports addresses: another one after each time that it was off."""

    addresses: tuple[str, ...] = ("172.18.0.3/16",)

    def state(self) -> PowerState:
        found = super().state()
        if found is PowerState.OFF:
            self.addresses = ("172.18.0.5/16", "fc00::5")
        return found

    def interfaces(self) -> tuple[str, ...]:
        assert self.value == "on", "the addresses of a machine that is off are not asked for"
        return self.addresses


def test_each_new_address_is_recorded_once() -> None:
    rounds: list[dict[str, object]] = [{}, {"power": "off"}, {}, {"power": "on"}, {}]
    seen = summary(Script().run(FakeContainer("on"), {BOOT: answered(f"{B1}\n")}, rounds))
    addresses = [value for kind, name, value in seen if (kind, name) == ("host", "machine-addresses")]
    assert addresses == [["172.18.0.3"], ["172.18.0.5", "fc00::5"]]


def test_a_lost_connection_is_one_blind_window() -> None:
    lost = Outcome(Delivery.NOT_SENT, error="connection refused")
    seen = summary(Script().run(None, {BOOT: lost}, [{}, {}, {"boot-id": f"{B1}\n"}]))
    windows = [s for s in seen if s[0] == "blind"]
    assert [isinstance(w[2], dict) and w[2]["to"] is None for w in windows] == [True, False]
    assert "connection refused" in str(windows[0][2])
    assert ("host", "boot-id", B1) in seen


def test_when_a_long_reading_began_is_recorded() -> None:
    """As on a slow host, or while this process is stopped."""
    script = Script()

    def slow() -> Outcome:
        script.clock.t += 30.0
        return answered(f"{B1}\n")

    power, slowly = FakePower("on"), {BOOT: slow}
    began = 1000.0
    (first, reading, *_) = script.run(power, slowly, [])
    assert (first.t, first.since) == (began, msgspec.UNSET)
    assert (reading.type, reading.t, reading.since) == ("boot-id", began + 30.0, began)


def test_a_broken_power_control_is_a_blind_window_of_power_only() -> None:
    seen = summary(Script().run(FakePower("on", broken=True), {BOOT: answered(f"{B1}\n")}, [{}]))
    assert [s[1] for s in seen if s[0] == "blind"] == ["power@n1"]
    assert ("host", "boot-id", B1) in seen


def test_an_unsupported_fact_is_a_separate_blind_window() -> None:
    answers = {BOOT: answered(f"{B1}\n"), CONTAINERS: answered("", 127, "sh: 1: exec: crictl: not found"), **MADE_OF}
    rounds: list[dict[str, object]] = [{}, {"containers": '{"containers": []}'}, {"boot-id": Outcome(Delivery.LOST)}]
    seen = summary(Script().run(None, answers, rounds, ["containers"]))
    windows = [s for s in seen if s[0] == "blind"]
    assert [(w[1], isinstance(w[2], dict) and w[2]["to"]) for w in windows] == [
        ("containers@n1", None),
        ("containers@n1", 1000.0 + 2 * PERIOD),
        ("host@n1", None),
    ]
    assert "crictl: not found" in str(windows[0][2])
    assert [s[1] for s in seen if s[0] == "host"].count("boot-id") == 3
    assert ("host", "containers", {"running": []}) in seen


def journal(*lines: tuple[float, str]) -> Outcome:
    entries = [{"__REALTIME_TIMESTAMP": str(int(t * 1e6)), "MESSAGE": text} for t, text in lines]
    return answered("".join(json.dumps(entry) + "\n" for entry in entries), 0 if lines else 1)


def test_the_journal_is_read_on_without_gap_or_repetition() -> None:
    def read_since(seconds: int) -> str:
        return str(FACTS["kubelet-journal"].command_for({**KNOWN, "unread-seconds": seconds}))

    first, second, third = (5.0, "one"), (6.0, "two"), (7.0, "three")
    answers = {BOOT: answered(f"{B1}\n"), **MADE_OF, read_since(2): journal(), read_since(4): journal(first)}
    late = read_since(6)  # the host was away at one reading
    answers[late] = journal(first, second, third)
    lost: dict[str, object] = {"boot-id": Outcome(Delivery.NOT_SENT, error="no route")}
    seen = summary(Script().run(None, answers, [{}, lost, {"boot-id": f"{B1}\n"}], ["kubelet-journal"]))
    read = [s[2] for s in seen if s[:2] == ("host", "kubelet-journal")]
    lines = [[line["message"] for line in value["lines"]] for value in read if isinstance(value, dict)]
    assert lines == [[], ["one"], ["two", "three"]]


def test_the_clock_of_a_host_is_measured_periodically() -> None:
    script = Script()
    answers = {BOOT: answered(f"{B1}\n"), str(FACTS["host-time"].command): answered("1003.500000000\n")}
    rounds: list[dict[str, object]] = [{} for _ in range(20)]
    seen = summary(script.run(None, answers, rounds, ["host-time"]))
    assert seen.count(("host", "host-time", 1003.5)) == 2, "every thirty seconds"
    assert script.offsets() == {"host n1": ClockOffset(-26.5, 0.0)}, (
        "it was set back meanwhile: what was seen last counts"
    )


def test_pings_that_fail_leave_all_else_that_is_read() -> None:
    """As on a host without ping, or of a target without a zone."""
    facts = ["boot-id", "round-trips?by=zone", "mtu-pings?size=1280", "time-sync-state"]
    (built,) = OBSERVER.build(Mock(clock=FakeClock(), reachable=["n1"], facts=facts))
    assert built._facts == ["boot-id", "time-sync-state"]
    assert built._extras == [*OPTIONAL_FACTS, "round-trips?by=zone", "mtu-pings?size=1280"]
