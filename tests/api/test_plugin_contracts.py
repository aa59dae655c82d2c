"""The contracts of chaos.testing: what keeps them passes, and each breach is found."""

from __future__ import annotations

from itertools import count
from typing import Any, Literal

import msgspec
import pytest
from pydantic import BaseModel

from chaos.extend.assertion import Model, Sample, Signal, Subject, SubjectSet, View
from chaos.extend.observer import EntryKind, RecordingEntry, Sampler, Sink
from chaos.extend.power import ALL_CAPABILITIES, ON_OFF_STATE, PowerDriver, PowerSettings, PowerState
from chaos.extend.renderer import Renderer
from chaos.testing import RecordingBuilder, check_assertion, check_observer, check_power_driver, check_renderer
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry
from tests.kit.turn_clock import TurnClock

COUNTER = count()


class Params(Model):
    node: str


class Loose(BaseModel):
    node: str


class Tainted:
    """Three lines that know nothing of time."""

    name, summary, needs = "tainted", "a node has a taint", "Node objects"
    example = "{assert: tainted, with: {node: victim}, always: {for: 30s}}"
    params: type[BaseModel] = Params
    node_fields: tuple[str, ...] = ("node",)
    moment_fields: tuple[str, ...] = ()
    sources = ("nodes",)

    def subjects(self, params: Any, view: View) -> SubjectSet:
        return SubjectSet("it has a taint", tuple(Subject(node, self._of(view, node)) for node in view.nodes("victim")))

    def _of(self, view: View, node: str) -> Signal:
        versions = view.timeline.nodes.get(node) or ()
        return Signal(tuple(Sample(v.t, bool(v.object.spec and v.object.spec.taints), v.seq, "x") for v in versions))


def recording() -> RecordingBuilder:
    story = RecordingBuilder().node(0, "n1", taints=["a:NoSchedule"]).done(10, "poweroff", step="poweroff")
    return story.host(15, "machine", "off").node(60, "n1", "Unknown", taints=["a:NoSchedule"], heartbeat=5)


def test_an_assertion_that_keeps_the_contract() -> None:
    assert check_assertion(Tainted(), recording(), 70).status == "held"


class Blindly(Tainted):
    """It takes what it cannot see for a taint."""

    masks_itself = True

    def _of(self, view: View, node: str) -> Signal:
        return Signal((Sample(view.timeline.start, True, 0, f"{node} is fine"),))


@pytest.mark.parametrize(
    ("attributes", "breach"),
    [
        ({"params": Loose}, "params takes unknown keys"),
        ({"node_fields": ("nod",)}, "node_fields names nod, which is no field of params"),
        ({"clame": lambda *_: None}, "an assertion has no clame: write claim"),
        ({"example": "{assert: tainted, with: {nod: victim}}"}, "the example has other parameters: node"),
        ({"example": "{assert: other, with: {node: victim}}"}, "the example is no expectation of this assertion"),
        ({"example": "{assert: [}"}, "the example is no expectation in YAML"),
        ({"example": "{assert: tainted, with: {node: victim}, never: {for: 30s}}"}, "the example is violated"),
        ({"sources": ("pods",)}, "the example is inconclusive"),
    ],
)
def test_a_breach_of_an_assertion_is_found(attributes: dict[str, Any], breach: str) -> None:
    with pytest.raises(AssertionError, match=breach) as found:
        check_assertion(type("Bad", (Tainted,), attributes)(), recording(), 70)
    assert str(found.value).startswith("assertion tainted: ")


def test_an_assertion_that_is_held_without_observation_is_found() -> None:
    with pytest.raises(AssertionError, match="it is held although nothing was observed"):
        check_assertion(Blindly(), recording(), 70)


class Settings(PowerSettings):
    kind: Literal["pdu"]
    outlet: int = 1


class AnyKind(PowerSettings):
    kind: str


class Pdu:
    """A machine that is a field."""

    capabilities = ON_OFF_STATE

    def __init__(self) -> None:
        self.value = PowerState.ON

    def state(self) -> PowerState:
        return self.value

    def on(self) -> None:
        self.value = PowerState.ON

    def off(self) -> None:
        self.value = PowerState.OFF


def driver(settings: type[PowerSettings] = Settings, **attributes: Any) -> PowerDriver:
    return PowerDriver("pdu", settings, lambda *_: type("Bad", (Pdu,), attributes)())


def test_a_power_driver_that_keeps_the_contract() -> None:
    assert check_power_driver(driver(), {"kind": "pdu", "outlet": 2}).state() is PowerState.ON


@pytest.mark.parametrize(
    ("broken", "breach"),
    [
        (driver(AnyKind), "kind is not a Literal of the driver's name"),
        (driver(capabilities=ALL_CAPABILITIES), "capabilities has soft-off, and the control has no soft_off"),
        (driver(off=lambda _: None), "the state after off is on"),
        (driver(state=lambda _: "on"), "state returned 'on', not a PowerState"),
    ],
)
def test_a_breach_of_a_power_driver_is_found(broken: PowerDriver, breach: str) -> None:
    with pytest.raises(AssertionError, match=breach) as found:
        check_power_driver(broken, {"kind": "pdu"})
    assert str(found.value).startswith("power control pdu: ")


class Talkative(Sampler):
    """It goes on after its stop."""

    def stop(self) -> None:
        """Nothing ends."""


class Silent(Sampler):
    def start(self, sink: Sink) -> None:
        super().start(lambda _: None)


class Late(Sampler):
    def has_synced(self) -> bool:
        return False


def test_an_observer_that_keeps_the_contract() -> None:
    clock = TurnClock()
    entries = check_observer(Sampler("queue", clock, 2.0, lambda: {"jobs": 3}), clock)
    assert {(entry.kind, entry.type, bytes(entry.object)) for entry in entries} == {
        (EntryKind.SAMPLE, "queue", b'{"jobs":3}')
    }
    assert all(isinstance(entry, RecordingEntry) for entry in entries)


@pytest.mark.parametrize(
    ("kind", "breach"),
    [
        (Talkative, "it records after its stop"),
        (Silent, "it recorded nothing"),
        (Late, "it has not synced within 10 s"),
    ],
)
def test_a_breach_of_an_observer_is_found(kind: type[Sampler], breach: str) -> None:
    clock = TurnClock()
    with pytest.raises(AssertionError, match=breach):
        check_observer(kind("queue", clock, 2.0, lambda: 3), clock)


@pytest.mark.parametrize(
    ("file", "render", "breach"),
    [
        ("x.txt", lambda result, _: result.headline, ""),
        ("../x.txt", lambda *_: "", "is no name of a file"),
        ("x.txt", lambda *_: b"", "it returned bytes, not a text"),
        ("x.txt", lambda *_: str(next(COUNTER)), "it is not pure"),
    ],
)
def test_renderers(file: str, render: Any, breach: str) -> None:
    timeline = Story().node(0, "n1").timeline(60)
    result = judge(experiment(), timeline, plugin_registry())
    renderer = Renderer("x", file, "", render)
    if not breach:
        assert check_renderer(renderer, result, timeline) == result.headline
        return
    with pytest.raises(AssertionError, match=breach):
        check_renderer(renderer, result, timeline)


def test_the_builder_writes_samples() -> None:
    timeline = RecordingBuilder().sample(3, "queue", {"jobs": 3}).timeline(5)
    assert [sample.value for sample in timeline.samples("queue")] == [{"jobs": 3}]
    assert msgspec.json.encode(timeline.samples("queue")[0].value) == b'{"jobs":3}'
