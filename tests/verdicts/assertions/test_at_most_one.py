"""at-most-one: a table of timelines. A step on n1 begins at 10; db-0 runs on n1, and is replaced on n2."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.verdict import Status
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, ask

DB: dict[str, Any] = {"owner": ("StatefulSet", "db")}
GONE: dict[str, Any] = {"type_": "DELETED", **DB}
ENDED: dict[str, Any] = {"phase": "Succeeded", "ended": 12, **DB}


def runs(story: Story, t: float, node: str = "n1", *uids: str) -> Story:
    running = [
        {"namespace": "demo", "pod": "db-0", "uid": uid, "container": "c", "id": f"id-{uid}", "startedAt": T0 - 100}
        for uid in uids
    ]
    return story.host(t, "containers", {"running": running}, node)


def db() -> Story:
    return Story().node(0, "n1").node(0, "n2").pod(0, "db-0", uid="old", **DB)


def replaced(story: Story, t: float = 20) -> Story:
    return story.pod(t, "db-0", node="n2", uid="new", started=t, container="c2", **DB)


def forced() -> Story:
    """Force deleted at 12, replaced at 20."""
    return replaced(db().pod(12, "db-0", uid="old", **GONE))


def ended() -> Story:
    story = db().pod(12.5, "db-0", uid="old", **ENDED)
    return replaced(story.pod(13, "db-0", uid="old", type_="DELETED", **ENDED))


def cut_off() -> Story:
    return replaced(db().node(12, "n1", "Unknown").pod(13, "db-0", uid="old", **GONE))


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("only one ever", db(), HELD),
        ("both run at the same time", runs(forced(), 25, "n1", "old"), VIOLATED),
        ("ended in time, according to its node", runs(runs(forced(), 11, "n1", "old"), 15), HELD),
        ("reading of its node too late", runs(forced(), 25), INCONCLUSIVE),
        ("no reading of its node", forced(), INCONCLUSIVE),
        ("reading of its node only before", runs(forced(), 11, "n1", "old"), INCONCLUSIVE),
        ("reading of the other node", runs(forced(), 25, "n2", "new"), INCONCLUSIVE),
        ("its machine is off", forced().host(15, "machine", "off"), HELD),
        ("its machine is off too late", forced().host(25, "machine", "off"), INCONCLUSIVE),
        (
            "its machine is said to be off, and answers",
            forced().host(15, "machine", "off").host(17, "pid1-start", 1).host(19, "machine", "off"),
            INCONCLUSIVE,
        ),
        ("its machine is on", forced().host(15, "machine", "on"), INCONCLUSIVE),
        ("ended according to the API alone", ended(), INCONCLUSIVE),
        ("ended according to its kubelet, confirmed by its node later", runs(ended(), 25), HELD),
        ("ended according to its kubelet, contradicted by its node", runs(ended(), 25, "n1", "old"), VIOLATED),
        ("the other pod never started", runs(db().pod(12, "db-0", uid="old", **GONE), 15, "n1", "old"), HELD),
        ("partitioned node, and the pod keeps running", runs(cut_off(), 30, "n1", "old"), VIOLATED),
        ("partitioned node", cut_off(), INCONCLUSIVE),
        ("another namespace", Story().node(0, "n1").pod(0, "db-0", namespace="other", **DB), INCONCLUSIVE),
        ("no StatefulSet", Story().node(0, "n1").pod(0, "db-0"), INCONCLUSIVE),
        ("reading of unknown format", forced().host(15, "containers", "none"), INCONCLUSIVE),
        ("blind", runs(forced().blind(11, 40, "pods"), 15), INCONCLUSIVE),
    ],
)
def test_at_most_one(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, "{assert: at-most-one, with: {namespace: demo}, always: {for: 40s}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(("name", "status"), [("db", VIOLATED), ("other", INCONCLUSIVE)])
def test_name_of_a_statefulset(name: str, status: Status) -> None:
    story = runs(forced(), 25, "n1", "old")
    expectation = f"{{assert: at-most-one, with: {{namespace: demo, name: {name}}}, always: {{for: 40s}}}}"
    assert ask(story, expectation).status is status


def test_both_pods_are_named() -> None:
    expectation = "{assert: at-most-one, with: {namespace: demo}, always: {for: 40s}}"
    verdict = ask(runs(forced(), 25, "n1", "old"), expectation)
    assert verdict.because == "demo/db-0: pod old on n1: running on n1; pod new on n2: running on n2, 10.0 s after stop"
