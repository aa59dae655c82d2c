"""What is known of a machine over time, and the readiness of pods that follows from it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.evidence import BOOT_ACTIONS
from chaos.core.machine_evidence import off_stretches
from chaos.core.signal import Signal
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.machines import effective, machine_of, running
from chaos.verdicts.judge.pods import is_ready
from chaos.verdicts.judge.signals import from_history
from tests.kit.story import T0, Story, plugin_registry

OFF, ON, UNKNOWN = True, False, None


def values(signal: Signal, moments: list[float]) -> list[bool | None]:
    """The value at each moment; unknown in the interval of a change of it."""
    return [_value(signal, T0 + t) for t in moments]


def _value(signal: Signal, t: float) -> bool | None:
    sample = signal.at(t)
    later = [other for other in signal.samples if other.t > t and other.lo < t]
    return sample.value if all(other.value is sample.value for other in later) else None


def cut(**pod: Any) -> Story:
    """Ready pod p on n1, whose power is cut at 10, is read off from 12 to 40 and on at 42."""
    story = Story().node(0, "n1").node(0, "n2").lease(5).lease(9).done(10, "power-cut").pod(0, "p", container="c1")
    for t in range(12, 41, 2):
        story.host(t, "machine", "off")
    return story.host(8, "machine", "on").host(42, "machine", "on").pod(60, "p", container="c2", **pod)


def reported(timeline: Timeline, name: str = "p") -> Signal:
    history = timeline.pods[f"uid-{name}"]
    return from_history(history, lambda v: (is_ready(v.object), "Ready" if is_ready(v.object) else "not Ready"))


def effective_of(timeline: Timeline, node: str = "n1") -> Signal:
    return effective(reported(timeline), timeline.pods["uid-p"], machine_of(timeline, node))


def test_the_names_of_actions_that_take_a_machine_down() -> None:
    assert {name for name, action in plugin_registry().actions.items() if action.takes_down} == set(BOOT_ACTIONS)


def test_a_machine_that_was_cut_off_from_power() -> None:
    timeline = cut().timeline(100)
    machine = machine_of(timeline, "n1")
    expected = [ON, ON, UNKNOWN, UNKNOWN, OFF, OFF, UNKNOWN, ON]
    assert values(machine.signal, [1, 9.9, 10, 11, 12, 40, 41, 42]) == expected
    signal = effective_of(timeline)
    assert values(signal, [1, 9.9, 10, 12, 30, 45, 59, 60, 99]) == [
        True,
        True,
        None,
        False,
        False,
        False,
        False,
        True,
        True,
    ]
    assert signal.at(T0 + 30).observation == "reported Ready, but n1 was off"
    assert not machine_of(timeline, "n2").downs, "nothing is known of it"


STANDING = [
    ("nothing but the word", cut(), True),
    ("a Lease that was stored soon after, because it was on its way", cut().lease(14), True),
    ("a Lease that was renewed later", cut().lease(14).lease(24), False),
    ("a Lease that was received late", cut().current(9, "leases").lease(24, renewed=9), True),
    ("a Lease that certainly was stored late", cut().lease(13).current(23, "leases").lease(24), False),
    ("a Lease in a blind window", cut().blind(11, 24, "leases").lease(24), True),
    ("an Unknown that the controller wrote", cut().node(30, "n1", "Unknown", heartbeat=0), True),
    ("a status of the kubelet", cut().node(30, "n1"), False),
    ("a host that answered", cut().host(20, "kubelet-state", "active"), False),
    ("a host that answered when it was read off", cut().host(12.1, "kubelet-state", "active"), True),
    ("a reading that took long", cut().host(20, "kubelet-state", "active", since=11), True),
    ("metrics of the kubelet", cut().metrics(20, 0).metrics(22, 0), False),
    ("metrics that failed", cut().metrics(20, None, status="503").metrics(22, None, status="503"), True),
    ("a host that was powered on, of which a stale off was read", cut().done(37, "power-on")
     .host(39, "kubelet-state", "active"), True),
    ("a host that its undo powered on", cut().act(37, "power-cut", "undo").host(39, "kubelet-state", "active"), True),
    ("the same PID 1", cut().host(5, "pid1-start", T0).host(50, "pid1-start", T0 + 1), False),
    ("another PID 1", cut().host(5, "pid1-start", T0).host(50, "pid1-start", T0 + 43), True),
    ("the same boot ID on the host", cut().host(5, "boot-id", "b").host(50, "boot-id", "b"), False),
    ("the same boot ID of the kernel that containers share", cut().host(5, "pid1-start", T0)
     .host(50, "pid1-start", T0 + 43).host(5, "boot-id", "b").host(50, "boot-id", "b"), True),
    ("the same boot ID in the Node", cut().node(4, "n1").node(60, "n1"), False),
    ("the same boot ID in all Nodes", cut().node(4, "n1", boot_id="b").node(4, "n2", boot_id="b")
     .node(60, "n1", boot_id="b"), True),
]  # fmt: skip


@pytest.mark.parametrize(("story", "stands"), [pytest.param(s, ok, id=what) for what, s, ok in STANDING])
def test_what_disproves_a_power_control(story: Story, stands: bool) -> None:
    signal = machine_of(story.timeline(100), "n1").signal
    assert signal.at(T0 + 30).value is (OFF if stands else ON), signal.samples


def test_without_a_power_control_a_step_leaves_the_machine_unknown() -> None:
    story = Story().node(0, "n1").lease(1).lease(2).done(10, "poweroff").lease(40).pod(0, "p")
    expected = [True, True, None, None]
    assert values(effective_of(story.timeline(100)), [9, 29, 31, 99]) == expected, (
        "30: the Lease may have been on its way"
    )
    undone = story.act(60, "poweroff", "undone").lease(80)
    assert values(effective_of(undone.timeline(100)), [9, 31, 99]) == [True, True, True], "it ran before and after"


def test_silence_proves_nothing() -> None:
    story = Story().node(0, "n1").lease(1).lease(2).pod(0, "p").node(50, "n1", "Unknown", heartbeat=0)
    assert values(effective_of(story.timeline(100)), [9, 49, 99]) == [True, True, True]


def test_a_reboot_that_only_the_boot_identity_shows() -> None:
    story = Story().node(0, "n1").done(10, "reboot").host(9, "pid1-start", T0).host(30, "pid1-start", T0 + 25)
    story.pod(0, "p", container="c1").pod(20, "p", container="c1", restarts=0, ready=False).pod(22, "p", container="c1")
    timeline = story.pod(40, "p", container="c1", restarts=1).timeline(100)
    assert values(machine_of(timeline, "n1").signal, [9, 11, 29, 31]) == [ON, UNKNOWN, UNKNOWN, ON]
    assert values(effective_of(timeline), [9, 11, 21, 23, 31, 41]) == [True, None, False, None, False, True]


def test_a_container_that_may_have_started_before_the_boot_may_be_gone() -> None:
    """The version with c2 was stored between 15 and 45, and the boot was read at 30: nothing later decides it."""
    story = Story().node(0, "n1").done(10, "reboot").host(9, "pid1-start", T0).host(30, "pid1-start", T0 + 25)
    story.pod(0, "p", container="c1").current(15, "pods").pod(45, "p", container="c2").current(46, "pods")
    signal = effective_of(story.pod(60, "p", container="c2", restarts=0).timeline(100))
    assert values(signal, [9, 29, 50, 99]) == [True, None, None, None]


CONTAINERS = [
    ("another container", {"container": "c2"}, True),
    ("the same container, started again", {"container": "c1", "restarts": 1}, True),
    ("the same container", {"container": "c1"}, False),
    ("no statuses of containers", {"started": None}, None),
]


@pytest.mark.parametrize(("pod", "value"), [pytest.param(pod, value, id=what) for what, pod, value in CONTAINERS])
def test_after_the_machine_was_off_a_pod_is_ready_once_its_containers_have_started(
    pod: dict[str, Any], value: bool | None
) -> None:
    story = cut().pod(70, "q", started=None)
    story.lines = [line for line in story.lines if line.t != T0 + 60]
    timeline = story.pod(60, "p", **pod).timeline(100)
    assert values(effective_of(timeline), [50, 60, 99]) == [False, value, value]
    new = timeline.pods["uid-q"]
    assert running(new, machine_of(timeline, "n1")).at(T0 + 99).value is True, "it came after the boot"


def test_a_pod_that_the_api_calls_not_ready_is_not_ready() -> None:
    story = cut().pod(50, "p", ready=False)
    signal = effective_of(story.timeline(100))
    assert values(signal, [30, 55, 61]) == [False, False, True]
    assert signal.at(T0 + 55).observation == "not Ready"


@given(st.integers(0, 2**32))
def test_no_pod_is_ready_while_its_machine_is_off(seed: int) -> None:
    """For random machines, delays and observers: what is known of the machine is true, and nothing off serves."""
    draw = random.Random(seed)  # noqa: S311
    off, on = 20 + draw.uniform(0, 20), 50 + draw.uniform(0, 60)
    story, end = Story().node(0, "n1").node(0, "n2"), 150.0
    if draw.random() < 0.8:
        story.done(off - draw.uniform(0, 3), draw.choice(["power-cut", "poweroff"]))
    if draw.random() < 0.8:
        _read_power(draw, story, off, on, end)
    is_proven = draw.random() < 0.7
    _write(draw, story, off, on, end, is_proven)
    timeline = story.timeline(end)
    assert not any(stretch.disproof for stretch in off_stretches(timeline, "n1")), "the power control was honest"
    machine, signal = machine_of(timeline, "n1"), effective_of(timeline)
    for moment in [draw.uniform(0, end) for _ in range(200)]:
        is_off = off <= moment < on
        known = _value(machine.signal, T0 + moment)
        if known is OFF:
            assert is_off, f"{moment}: {machine}"
            assert _value(signal, T0 + moment) is not True
        if is_off and any(down.off for down in machine.downs):
            assert known is not ON, f"{moment}: {machine}"
            assert _value(signal, T0 + moment) is not True, f"{moment}: {signal}"


@given(st.integers(0, 2**32))
def test_a_power_control_that_lies_is_found_out(seed: int) -> None:
    """It says off for at least 40 s of a machine that runs on, and renews its Lease, for all observers."""
    draw = random.Random(seed)  # noqa: S311
    off, end = 20 + draw.uniform(0, 20), 150.0
    story = Story().node(0, "n1").node(0, "n2").done(off - draw.uniform(0, 3), "power-cut")
    _read_power(draw, story, off, off + draw.uniform(40, 90), end, boots=False)
    _write(draw, story, end, end, end, draw.random() < 0.7)
    timeline = story.timeline(end)
    assert all(stretch.disproof for stretch in off_stretches(timeline, "n1"))
    assert not any(down.off for down in machine_of(timeline, "n1").downs)


def _read_power(draw: random.Random, story: Story, off: float, on: float, end: float, boots: bool = True) -> None:
    """Readings that take up to 3 s, some of which fail; each says what is true at some moment of it."""
    began = draw.uniform(0, 2)
    while began < end - 5:
        took = draw.choice([0.1, 0.1, draw.uniform(0, 3)])
        moment = began + draw.uniform(0, took)
        if draw.random() < 0.9:
            state = "off" if off <= moment < on else "on"
            story.host(began + took, "machine", state, since=began)
            if state == "on" and not began - 1 < off < began + took + 1:
                story.host(began + took + 0.1, "pid1-start", T0 + (on if boots and moment >= on else -1000))
        began += took + 2


def _write(draw: random.Random, story: Story, off: float, on: float, end: float, is_proven: bool) -> None:
    """Leases and statuses of the kubelet: on their way for up to 8 s, received up to 20 s late, with proofs."""
    lag = draw.uniform(0, 20) if is_proven else 0.0
    writes = [(t + draw.uniform(0, 1), "lease") for t in range(0, 140, 10)]
    writes += [(1.0, "before"), (on + draw.uniform(2, 20), "after")]
    received = []
    for sent, what in writes:
        if off <= sent < on + 1:
            continue
        stored = sent + draw.choice([0.1, 0.1, draw.uniform(0, 8)]) if what == "lease" else sent + 0.1
        received.append((stored, what, sent))
    for stored, what, sent in sorted(received):
        t = stored + draw.uniform(0, lag)
        if what == "lease":
            story.lease(t, renewed=sent)
        else:
            story.pod(t, "p", container=what)
    if is_proven:  # the watches were current as of lag seconds before
        for t in range(0, int(end), 5):
            for source in ("leases", "pods", "nodes"):
                story.current(max(t - lag, 0), source)
                story.lines[-1].t = T0 + t
