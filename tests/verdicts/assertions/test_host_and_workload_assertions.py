"""workload-available, inhibitor-held, shutdown-metrics: a table of timelines each. A power-off of n1 begins at 10."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from chaos.core.experiment import Expectation
from chaos.core.verdict import Status
from chaos.verdicts.assertions.workload_available import Params
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, Story, ask, plugin_registry

LOCK = [{"who": "kubelet", "what": "shutdown", "mode": "delay"}]


def web(ready: int = 3) -> Story:
    return Story().node(0, "n1").workload(0, "web", ready)


def of_web(story: Story, t: float, name: str, node: str = "n1", **pod: Any) -> Story:
    labels = {"pod-template-hash": "1"}
    return story.pod(t, name, node, labels=labels, owner=("ReplicaSet", "web-1"), **pod)


def cut(noticed: float = 50, counted: float = 50.2) -> Story:
    """web has a pod on n1, whose power is cut at 10, and two on n2; the Deployment counts it until ``counted``."""
    story = web().node(0, "n2").lease(5).lease(9).host(8, "machine", "on").done(10, "power-cut", step="stop")
    for t in range(12, 90, 2):
        story.host(t, "machine", "off")
    for name, node in (("web-1-a", "n1"), ("web-1-b", "n2"), ("web-1-c", "n2")):
        of_web(story, 0, name, node, container=name)
    story = of_web(story, noticed, "web-1-a", ready=False, container="web-1-a").workload(counted, "web", 2)
    story.lines.sort(key=lambda line: line.t)
    return story


REPLACED = of_web(cut(), 70, "web-1-d", "n2", container="d").workload(70.1, "web", 3)


def two_on_it() -> Story:
    """Two pods on n1, of which the Deployment at first notices one."""
    story = of_web(cut(counted=50.6), 0, "web-1-b", "n1", container="web-1-b")
    story = of_web(story, 50.1, "web-1-b", "n1", ready=False, container="web-1-b").workload(50.3, "web", 2)
    story = story.workload(50.6, "web", 1)
    story.lines.sort(key=lambda line: line.t)
    return story


@pytest.mark.parametrize(
    ("what", "filters", "story", "time", "status"),
    [
        ("the Deployment counts a pod that is no longer Ready", "", cut(), "within: 60s", VIOLATED),
        ("the same, by the API's word", "as: reported", cut(), "within: 60s", HELD),
        ("replaced", "", REPLACED, "within: 65s", HELD),
        ("one may be unavailable", "unavailable-at-most: 1", cut(), "always: {for: 60s}", HELD),
        ("33 percent of three is none", 'unavailable-at-most: "33%"', cut(), "always: {for: 60s}", VIOLATED),
        ("34 percent of three is one", 'unavailable-at-most: "34%"', cut(), "always: {for: 60s}", HELD),
        (
            "one may be unavailable, and two are",
            "unavailable-at-most: 1",
            of_web(cut(), 60, "web-1-b", "n2", ready=False, container="web-1-b").workload(60.2, "web", 1),
            "always: {for: 60s}",
            VIOLATED,
        ),
        ("of two on the machine one is counted", "unavailable-at-most: 1", two_on_it(), "within: 60s", VIOLATED),
        ("two of them", "unavailable-at-most: 2", two_on_it(), "always: {for: 60s}", HELD),
    ],
)
def test_workload_on_a_machine_that_is_off(what: str, filters: str, story: Story, time: str, status: Status) -> None:
    expectation = f"{{assert: workload-available, with: {{namespace: demo, {filters}}}, after: stop + 5s, {time}}}"
    verdict = ask(story, expectation, action="power-cut")
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize("number", ["-1", "-5%", "101%", "1.5", "true", "x", "5 %"])
def test_not_a_number_of_pods(number: str) -> None:
    with pytest.raises(ValueError, match="unavailable-at-most must be a whole number from 0 or a percentage"):
        Params.model_validate({"namespace": "demo", "unavailable-at-most": yaml.safe_load(number)})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"owner": "Job/web"}, "a Job is not a workload"),
        ({"owner": "StatefulSet/db", "names": ["db"]}, "give owner, or names and kinds"),
        ({"owner": "db"}, "valid dictionary or instance"),
    ],
)
def test_not_a_workload(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Params.model_validate({"namespace": "demo", **params})


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("available", "", web(), HELD),
        ("one less", "unavailable-at-most: 1", web(2), HELD),
        ("two less", "unavailable-at-most: 1", web(1), VIOLATED),
        ("more than there are", "unavailable-at-most: 9", web(0), HELD),
        ("in time", "", web(2).workload(14, "web", 3), HELD),
        ("too late", "", web(2).workload(16, "web", 3), VIOLATED),
        ("too early", "", web(3).workload(9, "web", 2), VIOLATED),
        ("never", "", web(2), VIOLATED),
        ("one of two", "", web().workload(0, "db", 1, plural="statefulsets"), VIOLATED),
        ("wrong object", "names: [web]", web(2).workload(14, "db", 3), VIOLATED),
        ("only that name", "names: [web]", web().workload(0, "db", 1), HELD),
        ("only that owner", "owner: Deployment/web", web().workload(0, "db", 1, plural="statefulsets"), HELD),
        ("an owner by kind and name", "owner: {kind: Deployment, name: web}", web(2), VIOLATED),
        ("an owner of another kind", "owner: StatefulSet/web", web(), INCONCLUSIVE),
        ("only that kind", "kinds: [Deployment]", web().workload(0, "db", 1, plural="statefulsets"), HELD),
        ("a DaemonSet", "kinds: [DaemonSet]", web().workload(0, "agent", 2, plural="daemonsets"), VIOLATED),
        ("another namespace", "", web().workload(0, "db", 1, namespace="other"), HELD),
        ("old news", "", web(2).workload(0, "web", 3, generation=2, observed=1), VIOLATED),
        ("deleted", "", web(2).workload(12, "web", 3, type_="DELETED"), VIOLATED),
        ("scaled to nothing", "", Story().node(0, "n1").workload(0, "web", 0, wanted=0), HELD),
        ("blind over the deadline", "", web(2).workload(16, "web", 3).blind(12, 16, "deployments"), INCONCLUSIVE),
        ("blind of another kind", "", web(3).blind(0, 60, "statefulsets"), HELD),
        ("empty set", "", Story().node(0, "n1"), INCONCLUSIVE),
        ("a name that is not there", "names: [api]", web(), INCONCLUSIVE),
    ],
)
def test_workload_available(what: str, filters: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: workload-available, with: {{namespace: demo, {filters}}}, within: 5s}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


def with_lock() -> Story:
    return Story().node(0, "n1").host(5, "inhibitor-locks", LOCK)


@pytest.mark.parametrize(
    ("what", "story", "held", "status"),
    [
        ("in time", with_lock().host(14, "inhibitor-locks", LOCK), True, HELD),
        ("too late", with_lock().host(10, "inhibitor-locks", []).host(16, "inhibitor-locks", LOCK), True, VIOLATED),
        ("too early: read before the action", with_lock(), True, INCONCLUSIVE),
        ("perhaps read before it", with_lock().host(14, "inhibitor-locks", LOCK, since=9.5), True, INCONCLUSIVE),
        ("lost", with_lock().host(10.5, "inhibitor-locks", []), True, INCONCLUSIVE),  # unknown from 10 to 10.5
        ("lock must be lost", with_lock().host(12, "inhibitor-locks", []), False, HELD),
        ("another's lock", with_lock().host(10, "inhibitor-locks", [LOCK[0] | {"who": "me"}]), True, VIOLATED),
        (
            "a lock on something else",
            with_lock().host(10, "inhibitor-locks", [LOCK[0] | {"what": "sleep"}]),
            True,
            VIOLATED,
        ),
        (
            "a lock on several things",
            with_lock().host(12, "inhibitor-locks", [LOCK[0] | {"what": "sleep:shutdown"}]),
            True,
            HELD,
        ),
        ("a lock that blocks", with_lock().host(10, "inhibitor-locks", [LOCK[0] | {"mode": "block"}]), True, VIOLATED),
        ("another node's lock", with_lock().host(12, "inhibitor-locks", LOCK, node="n2"), True, INCONCLUSIVE),
        (
            "the next action",
            with_lock().host(10, "inhibitor-locks", []).done(11, "poweroff", step="x"),
            True,
            INCONCLUSIVE,
        ),
        ("unknown format", with_lock().host(12, "inhibitor-locks", "kubelet"), True, INCONCLUSIVE),
        ("blind", with_lock().host(12, "inhibitor-locks", LOCK).blind(10, 20, "host@n1"), True, INCONCLUSIVE),
    ],
)
def test_inhibitor_held(what: str, story: Story, held: bool, status: Status) -> None:
    story.done(10, "poweroff", step="stop")
    story.lines.sort(key=lambda line: (line.t, line.kind == "host"))  # a reading at 10 comes after the start at 10
    expectation = f"{{assert: inhibitor-held, with: {{node: victim, held: {str(held).lower()}}}, within: 5s}}"
    verdict = ask(story, expectation)
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_lock_must_stay_between_readings() -> None:
    expectation = "{assert: inhibitor-held, with: {node: victim}, within: 5s, for: 10s}"
    lost = with_lock().host(12, "inhibitor-locks", []).host(14, "inhibitor-locks", [])
    assert ask(lost, expectation).status is VIOLATED
    stale = with_lock().host(10.5, "inhibitor-locks", LOCK).host(12.5, "inhibitor-locks", [])
    assert ask(stale, expectation).status is VIOLATED
    assert (
        ask(with_lock().host(12, "inhibitor-locks", LOCK).host(30, "inhibitor-locks", LOCK), expectation).status is HELD
    )


def test_last_reading_expires() -> None:
    """A single reading, while the kubelet still holds the old lock."""
    expectation = "{assert: inhibitor-held, with: {node: victim}, within: 5s, for: 20s}"
    once = with_lock().done(10, "poweroff", step="stop").host(11, "inhibitor-locks", LOCK)
    assert ask(once, expectation).status is INCONCLUSIVE
    assert ask(once.host(40, "inhibitor-locks", LOCK), expectation).status is HELD


def scraped() -> Story:
    """An earlier shutdown from -500 to -490."""
    return Story().node(0, "n1").metrics(5, -500, -490)


def measured() -> Story:
    """The same, with a node whose clock is right."""
    return Story(clockOffsets={"host n1": {"seconds": 0, "within": 0.1}}).node(0, "n1").metrics(5, -500, -490)


BOTH = "started: true, ended: true"


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("started", "started: true", scraped().metrics(12, 11, 0), HELD),
        ("started and ended", BOTH, scraped().metrics(12, 11, 0).metrics(18, 11, 17), HELD),
        ("started, not ended", BOTH, scraped().metrics(12, 11, 0), VIOLATED),
        ("an earlier one does not count", BOTH, scraped().metrics(12, -500, -490), VIOLATED),
        ("whole seconds", "started: true", scraped().metrics(12, 9.2, 0), HELD),
        ("too late", "started: true", scraped().metrics(31, 11, 0), VIOLATED),
        ("another node", "started: true", scraped().metrics(12, 11, 0, node="n2"), VIOLATED),
        ("quick enough", "duration-at-most: 6s", scraped().metrics(18, 11, 17), HELD),
        ("too slow", "duration-at-most: 6s", scraped().metrics(22, 11, 19), VIOLATED),
        ("unreachable", BOTH, scraped().metrics(12, None, None, status="unreachable"), INCONCLUSIVE),
        ("no such metric", BOTH, scraped().metrics(12, None, None), VIOLATED),
        ("milliseconds", "started: true", measured().metrics(12, 11_000, 0), VIOLATED),
        ("a start that is still to come", "started: true", measured().metrics(12, 3_611, 0), VIOLATED),
        ("a start an hour before", "started: true", measured().metrics(12, -3_589, 0), VIOLATED),
        ("an end that is still to come", BOTH, measured().metrics(12, 11, 3_617), VIOLATED),
        ("a clock that is measured", BOTH, measured().metrics(12, 11, 12), HELD),
        ("never started", "started: false", Story().node(0, "n1").metrics(5, 0), HELD),
        ("never scraped", BOTH, Story().node(0, "n1"), INCONCLUSIVE),
        ("blind", BOTH, scraped().blind(12, 40, "metrics@n1"), INCONCLUSIVE),
    ],
)
def test_shutdown_metrics(what: str, filters: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: shutdown-metrics, with: {{node: victim, {filters}}}, within: 20s}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_zeros_after_a_boot_are_unknown() -> None:
    """Measured on v1.36.2: the first scrape after a boot has 0 for both gauges, the next one has the values."""
    story = (
        scraped().metrics(12, 11, 0).metrics(14, None, None, status="unreachable").metrics(40, 0).metrics(41, 11, 13)
    )
    expectation = (
        f"{{assert: shutdown-metrics, with: {{node: victim, {BOTH}, since: stop}}, after: stop + 29s, within: 5s}}"
    )
    assert ask(story, expectation).status is HELD
    never = expectation.replace("started: true, ended: true", "started: false").replace(
        "within: 5s", "never: {for: 1s}"
    )
    assert ask(story, never).status is INCONCLUSIVE


@pytest.mark.parametrize("name", sorted(plugin_registry().assertions))
def test_examples_are_valid(name: str) -> None:
    assertion = plugin_registry().assertions[name]
    example = Expectation.model_validate(yaml.safe_load(assertion.example))
    assert example.assert_ == name
    params = assertion.params.model_validate(example.with_)
    assert all(field in assertion.params.model_fields for field in (*assertion.node_fields, *assertion.moment_fields))
    assert params
    assert assertion.summary
    assert assertion.__class__.__doc__
