"""The indexes of pods and Events have what a scan of everything finds, in the same order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chaos.core.history import History
from chaos.core.indexes import controller_key
from chaos.core.kube import Pod, pod_condition
from tests.kit.story import INCONCLUSIVE, VIOLATED, Story, ask

NODES, OWNERS, NAMES = ("", "n1", "n2", "n3"), ("web-1", "web-2"), ("a", "b", "c")


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Versions of pods that become bound, get another controller, are evicted, or are lost."""
    rng, story = draw(st.randoms(use_true_random=False)), Story()
    nodes: dict[str, str] = {}
    for t in range(1, 40):
        name = f"p{rng.randrange(12)}"
        nodes[name] = nodes.get(name) or rng.choice(NODES)
        story.pod(
            t,
            name,
            nodes[name],
            owner=("ReplicaSet", rng.choice(OWNERS)),
            disruption=rng.choice(["", "", "EvictionByEvictionAPI"]),
            labels=rng.choice([None, {"app": "web"}, {"app": "web", "tier": "1"}, {"app": "db"}]),
            namespace=f"space-{int(name[1:]) % 2}",
            type_=rng.choice(["MODIFIED", "MODIFIED", "DELETED"]),
            note=rng.choice(["", "not seen"]),
        )
        story.event(t, rng.choice(["Killing", "Started"]), rng.choice(NAMES), "Pod")
    return story


@given(story=stories())
def test_pods(story: Story) -> None:
    pods = story.timeline().pods
    versions = {id(history): [version.object for version in history] for history in pods.values()}
    ever: dict[str, dict[int, set[Any]]] = {
        "node": {key: {pod.spec.node_name for pod in found if pod.spec} for key, found in versions.items()},
        "namespace": {key: {pod.metadata.namespace for pod in found} for key, found in versions.items()},
        "controller": {key: {controller_key(pod) for pod in found} for key, found in versions.items()},
        "app": {key: {(pod.metadata.labels or {}).get("app") for pod in found} for key, found in versions.items()},
        "evicted": {
            key: {bool(pod_condition(pod, "DisruptionTarget")) for pod in found} for key, found in versions.items()
        },
    }

    def scan(what: str, *values: object) -> list[History[Pod]]:
        return [history for history in pods.values() if ever[what][id(history)] & set(values)]

    for nodes in (["n1"], ["n2", "n1"], ["n2", "n3", "n2"]):
        assert pods.on_nodes(nodes) == scan("node", *nodes)
    for namespace in ("space-0", "space-1", "elsewhere"):
        assert pods.in_namespace(namespace) == scan("namespace", namespace)
        groups = [group for group in pods.label_groups(namespace) if group[0].get("app") == "web"]
        web = pods.in_groups(groups)
        assert web == [h for h in scan("app", "web") if h in pods.in_namespace(namespace)]
        for owner in OWNERS:
            assert pods.of_controller(f"{namespace}/{owner}") == scan("controller", f"{namespace}/{owner}")
    assert pods.disrupted == scan("evicted", True)


@given(story=stories())
def test_events(story: Story) -> None:
    events = story.timeline().events
    for name in NAMES:
        found = [item for item in events if item[1].involved_object and item[1].involved_object.name == name]
        assert list(events.about(name)) == found
    for reason in ("Killing", "Started", "Other"):
        assert list(events.with_reason(reason)) == [item for item in events if item[1].reason == reason]


def test_a_pod_that_was_lost_before_it_was_bound_may_have_been_on_any_node() -> None:
    def deleted(node: str, note: str = "") -> Story:
        story = Story().node(0, "n1").pod(1, "p", "n1").pod(5, "q", node, phase="Pending", started=None)
        return story.done(10, "poweroff").blind(12, 14, "pods").pod(14, "q", node, type_="DELETED", note=note)

    question = "{assert: pods, with: {node: victim, count: {most: 0, phase: Pending}}, always: {for: 10s}}"
    assert ask(deleted("n1"), question, end=60).status is VIOLATED
    assert ask(deleted("", "not seen"), question, end=60).status is INCONCLUSIVE
    assert "2 of" not in ask(deleted("n2"), question, end=60).because
