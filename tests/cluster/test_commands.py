"""Commands to the API: the loop of kubectl drain in cluster time, with every refusal recorded, and taints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chaos.cluster.commands import KubeTransport, merge_taints
from chaos.cluster.errors import KubeUnreachable
from chaos.core.command import (
    ApiCommand,
    Delivery,
    DrainRules,
    KubeCommand,
    Outcome,
    PodsCommand,
    PodSelector,
    PodVerb,
    TaintsCommand,
    is_success,
)
from chaos.core.drain_filter import select_pods
from chaos.core.errors import Refused
from chaos.core.permission import Permission
from chaos.core.ports import Response
from tests.kit.fakes import FakeClock, FakeKube

ALL = DrainRules(force=True, ignore_daemonsets=True, delete_emptydir_data=True)
NONE = DrainRules()
DAEMONSET = {"kind": "DaemonSet", "name": "agent", "apiVersion": "apps/v1", "controller": True}
REPLICASET = {"kind": "ReplicaSet", "name": "web-1", "apiVersion": "apps/v1", "controller": True}
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
CAUSE = "The disruption budget web needs 2 healthy pods and has 2 currently"


def response(status: int, body: Any = None, **headers: str) -> Response:
    return Response(status, json.dumps(body or {}).encode(), headers)


def refusal(status: int = 429, again: str = "") -> Response:
    causes = [{"reason": "DisruptionBudget", "message": CAUSE}]
    headers = {"retry-after": again} if again else {}
    return response(status, {"kind": "Status", "message": BUDGET, "details": {"causes": causes}}, **headers)


def pod(name: str, owner: dict[str, Any] | None = REPLICASET, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "demo", "uid": f"uid-{name}", "ownerReferences": [owner] if owner else None}
    return {"metadata": metadata | more.pop("metadata", {}), "status": {"phase": "Running"}, **more}


class Kube(FakeKube):
    """Answers by method and path, one after the other, the last for ever; records what was sent and when."""

    def __init__(self, clock: FakeClock, script: Mapping[str, Sequence[Response | KubeUnreachable]]) -> None:
        super().__init__({})
        self.clock, self.script = clock, {key: list(answers) for key, answers in script.items()}
        self.log: list[tuple[float, str, Any]] = []
        self.queries: list[Mapping[str, str] | None] = []

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        self.log.append((self.clock.now() - 1000.0, f"{method} {path}", body))
        self.queries.append(query)
        answers = self.script[f"{method} {path}"]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, KubeUnreachable):
            raise answer
        return answer

    def times(self, what: str) -> list[float]:
        return [t for t, sent, _ in self.log if sent == what]


def one_pod(command: PodsCommand, **answers: list[Response | KubeUnreachable]) -> tuple[Outcome, Kube]:
    """The outcome for the pod demo/web; ``answers`` to evict, get, delete, patch and status."""
    clock = FakeClock()
    path = "/api/v1/namespaces/demo/pods/web"
    script: dict[str, list[Response | KubeUnreachable]] = {"GET /api/v1/pods": [response(200, {"items": [pod("web")]})]}
    names = {
        "evict": f"POST {path}/eviction",
        "get": f"GET {path}",
        "delete": f"DELETE {path}",
        "patch": f"PATCH {path}",
        "status": f"PATCH {path}/status",
    }
    kube = Kube(clock, script | {names[name]: given for name, given in answers.items()})
    return KubeTransport(kube, clock).send(command), kube


def drain(wait: float = 60.0) -> PodsCommand:
    return PodsCommand(PodVerb.EVICT, PodSelector(node="n1"), wait=wait, rules=NONE)


EVICT, GET = "POST /api/v1/namespaces/demo/pods/web/eviction", "GET /api/v1/namespaces/demo/pods/web"
THERE, ANOTHER = response(200, pod("web")), response(200, pod("web", metadata={"uid": "uid-other"}))


@pytest.mark.parametrize("end", [response(404), ANOTHER], ids=["gone", "another pod has its name"])
def test_a_refusal_is_recorded_and_retried_after_5_s_then_the_pods_end_is_awaited(end: Response) -> None:
    outcome, kube = one_pod(drain(), evict=[refusal(), refusal(), response(201)], get=[THERE, THERE, end])
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 0)
    assert kube.times(EVICT) == [0, 5, 10]
    assert kube.times(GET) == [11, 12, 13]
    message = f"{BUDGET} {CAUSE}"
    (result,) = outcome.evidence["pods"]
    assert result["refusals"] == [{"sent": t, "t": t, "status": 429, "message": message} for t in (1000.0, 1005.0)]
    assert (result["pod"], result["uid"], result["status"], result["attempts"], result["gone"]) == (
        "demo/web",
        "uid-web",
        201,
        3,
        True,
    )


def test_the_time_is_over() -> None:
    outcome, kube = one_pod(drain(wait=12), evict=[refusal()])
    assert kube.times(EVICT) == [0, 5, 10]
    assert (outcome.exit, outcome.stderr) == (1, "demo/web was refused")
    assert is_success(drain(), outcome)
    assert kube.clock.now() == 1012.0


def test_a_pod_that_stays_terminating() -> None:
    outcome, _ = one_pod(drain(wait=3), evict=[response(201)], get=[THERE])
    assert (outcome.exit, outcome.stderr) == (1, "demo/web is not gone")


@pytest.mark.parametrize(("after", "second"), [("10", 10), ("2", 5), ("soon", 5)])
def test_the_server_may_request_a_longer_wait(after: str, second: float) -> None:
    _, kube = one_pod(drain(), evict=[refusal(again=after), response(404)])
    assert kube.times(EVICT) == [0, second]


def test_a_server_timeout_with_retry_after_is_retried() -> None:
    outcome, kube = one_pod(drain(), evict=[refusal(504, "10"), response(404)])
    assert (outcome.exit, kube.times(EVICT)) == (0, [0, 10])


def test_a_namespace_that_ends_is_waited_for() -> None:
    ends = response(403, {"message": "no", "details": {"causes": [{"reason": "NamespaceTerminating"}]}})
    outcome, kube = one_pod(drain(), evict=[ends, response(404)])
    assert (outcome.exit, kube.times(EVICT)) == (0, [0, 5])


@pytest.mark.parametrize("status", [403, 500])
def test_any_other_answer_is_a_failure(status: int) -> None:
    outcome, _ = one_pod(drain(), evict=[response(status, {"message": "more than one budget"})])
    assert (outcome.exit, outcome.stderr) == (2, "demo/web: more than one budget")
    assert not is_success(drain(), outcome)


def test_a_lost_response_is_retried_until_the_deadline() -> None:
    lost = KubeUnreachable("reset", "the line was cut", sent=True)
    outcome, kube = one_pod(drain(), evict=[lost, response(404)])
    assert (outcome.exit, kube.times(EVICT)) == (0, [0, 5])
    outcome, _ = one_pod(drain(wait=0), evict=[lost])
    assert outcome.delivery == Delivery.LOST


def test_a_run_that_stops_ends_the_wait() -> None:
    clock = FakeClock()
    path = "POST /api/v1/namespaces/demo/pods/web/eviction"
    kube = Kube(clock, {"GET /api/v1/pods": [response(200, {"items": [pod("web")]})], path: [refusal()]})
    clock.sleep = lambda seconds: seconds < 0  # type: ignore[method-assign]
    assert KubeTransport(kube, clock).send(drain()).exit == 1
    assert kube.times(path) == [0]


def test_each_pod_is_evicted_once_without_a_wait() -> None:
    outcome, kube = one_pod(PodsCommand(PodVerb.EVICT, PodSelector(node="n1"), grace=7), evict=[refusal()])
    assert (outcome.exit, len(kube.times(EVICT)), kube.clock.slept) == (1, 1, 0.0)
    assert kube.log[-1][2] == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "demo"},
        "deleteOptions": {"preconditions": {"uid": "uid-web"}, "gracePeriodSeconds": 7},
    }


def test_delete_and_remove_finalizers() -> None:
    outcome, kube = one_pod(PodsCommand(PodVerb.DELETE, PodSelector(node="n1"), grace=0), delete=[response(200)])
    sent = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-web"}, "gracePeriodSeconds": 0}
    assert (outcome.exit, kube.log[-1][2]) == (0, sent)
    outcome, kube = one_pod(PodsCommand(PodVerb.REMOVE_FINALIZERS, PodSelector(node="n1")), patch=[response(200)])
    assert (outcome.exit, kube.log[-1][2]) == (0, {"metadata": {"uid": "uid-web", "finalizers": None}})


def test_mark_disruption_sets_what_an_eviction_sets() -> None:
    outcome, kube = one_pod(PodsCommand(PodVerb.MARK_DISRUPTION, PodSelector(node="n1")), status=[response(200)])
    at = "1970-01-01T00:16:40Z"
    said = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting", "lastTransitionTime": at}
    condition = {"type": "DisruptionTarget", "status": "True", **said}
    assert (outcome.exit, kube.log[-1][1]) == (0, "PATCH /api/v1/namespaces/demo/pods/web/status")
    assert kube.log[-1][2] == {"metadata": {"uid": "uid-web"}, "status": {"conditions": [condition]}}


def test_how_pods_are_selected() -> None:
    clock = FakeClock()
    kube = Kube(clock, {"GET /api/v1/namespaces/demo/pods": [response(200, {"items": []})]})
    choice = PodSelector(node="n1", namespace="demo", name="web", selector="app=web")
    outcome = KubeTransport(kube, clock).send(PodsCommand(PodVerb.DELETE, choice))
    assert kube.queries == [{"fieldSelector": "spec.nodeName=n1,metadata.name=web", "labelSelector": "app=web"}]
    said = "there are no pods on n1 (namespace demo, name web, labels app=web)"
    assert (outcome.exit, outcome.stderr) == (2, said)
    empty = KubeTransport(kube, clock).send(
        PodsCommand(PodVerb.EVICT, PodSelector(node="n1", namespace="demo"), rules=NONE)
    )
    assert empty.exit == 0  # as kubectl: a node without pods is drained


FINISHED = {"status": {"phase": "Succeeded"}}
VOLUME = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
STATIC = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "hash"}}}
# pod, rules, its DaemonSet exists -> evicted, left, or part of the refusal
RULES = [
    (pod("a"), NONE, True, "evicted"),
    (pod("a", None), NONE, True, "declare no controller"),
    (pod("a", None), DrainRules(force=True), True, "evicted"),
    (pod("a", None, **FINISHED), NONE, True, "evicted"),
    (pod("a", DAEMONSET), NONE, True, "managed by a DaemonSet"),
    (pod("a", DAEMONSET), DrainRules(ignore_daemonsets=True), True, "left"),
    (pod("a", DAEMONSET, **FINISHED), NONE, True, "evicted"),
    (pod("a", DAEMONSET), DrainRules(ignore_daemonsets=True), False, "DaemonSet does not exist"),
    (pod("a", DAEMONSET), DrainRules(force=True), False, "evicted"),
    (pod("a", DAEMONSET, **VOLUME), DrainRules(force=True), False, "local storage"),
    (pod("a", None, **STATIC), NONE, True, "left"),
    (pod("a", **VOLUME), NONE, True, "local storage"),
    (pod("a", **VOLUME), DrainRules(delete_emptydir_data=True), True, "evicted"),
    (pod("a", None, **VOLUME), DrainRules(delete_emptydir_data=True), True, "declare no controller"),
    (pod("a", **VOLUME, **FINISHED), NONE, True, "evicted"),
    (pod("a", None, **VOLUME), ALL, True, "evicted"),
]


@pytest.mark.parametrize(("given", "rules", "exists", "expected"), RULES)
def test_what_drain_skips_and_refuses(given: dict[str, Any], rules: DrainRules, exists: bool, expected: str) -> None:
    found = select_pods([given], rules, lambda _namespace, _name: exists)
    if expected == "evicted":
        assert (found.to_evict, found.to_skip, found.refusals) == ([given], [], {})
    elif expected == "left":
        assert (found.to_evict, found.to_skip, found.refusals) == ([], [given], {})
    else:
        assert (found.to_evict, found.to_skip) == ([], [])
        assert expected in found.refusal_message
        assert found.refusal_message.startswith("demo/a: ")


def test_one_pod_that_must_not_be_evicted_prevents_the_drain() -> None:
    clock = FakeClock()
    kube = Kube(clock, {"GET /api/v1/pods": [response(200, {"items": [pod("web"), pod("bare", None)]})]})
    outcome = KubeTransport(kube, clock).send(drain())
    assert outcome.exit == 2
    assert "demo/bare: they declare no controller" in outcome.stderr
    assert [sent for _, sent, _ in kube.log] == ["GET /api/v1/pods"]


OTHER = {"key": "a", "effect": "NoExecute"}
MINE = {"key": "k", "value": "v", "effect": "NoSchedule"}
MINE_TOO = {"key": "k", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("before", "command", "after"),
    [
        ([OTHER], TaintsCommand("n1", add=(MINE,)), [OTHER, MINE]),
        ([{**MINE, "value": "old"}, OTHER], TaintsCommand("n1", add=(MINE,)), [OTHER, MINE]),
        ([OTHER, MINE, MINE_TOO], TaintsCommand("n1", remove=("k:NoSchedule",)), [OTHER, MINE_TOO]),
        ([OTHER, MINE, MINE_TOO], TaintsCommand("n1", remove=("k",)), [OTHER]),
        ([], TaintsCommand("n1", remove=("k",)), []),
    ],
)
def test_taints_of_others_stay(before: list[Any], command: TaintsCommand, after: list[Any]) -> None:
    assert merge_taints(before, command) == after


def test_a_change_that_came_in_between_is_not_overwritten() -> None:
    clock = FakeClock()
    versions = [{"metadata": {"resourceVersion": str(v)}, "spec": {"taints": [OTHER] * (v - 1)}} for v in (1, 2)]
    answers = {
        "GET /api/v1/nodes/n1": [response(200, version) for version in versions],
        "PATCH /api/v1/nodes/n1": [response(409), response(200)],
    }
    kube = Kube(clock, answers)
    outcome = KubeTransport(kube, clock).send(TaintsCommand("n1", add=(MINE,)))
    assert (outcome.exit, outcome.evidence) == (200, {"taints": [OTHER, MINE]})
    sent = [body for _, what, body in kube.log if what.startswith("PATCH")]
    assert [body["metadata"]["resourceVersion"] for body in sent] == ["1", "2"]


def test_annotations_are_written_with_the_taints() -> None:
    clock = FakeClock()
    node = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    kube = Kube(clock, {"GET /api/v1/nodes/n1": [response(200, node)], "PATCH /api/v1/nodes/n1": [response(200)]})
    KubeTransport(kube, clock).send(TaintsCommand("n1", add=(MINE,), annotations={"a": "x", "b": None}))
    (body,) = [body for _, what, body in kube.log if what.startswith("PATCH")]
    metadata = {"resourceVersion": "1", "annotations": {"a": "x", "b": None}}
    assert body == {"metadata": metadata, "spec": {"taints": [MINE]}}


def test_conflicts_are_retried_a_limited_number_of_times() -> None:
    clock = FakeClock()
    kube = Kube(clock, {"GET /api/v1/nodes/n1": [response(200)], "PATCH /api/v1/nodes/n1": [response(409)]})
    command = TaintsCommand("n1", add=(MINE,))
    outcome = KubeTransport(kube, clock).send(command)
    assert outcome.exit == 409
    assert not is_success(command, outcome)


def test_evidence_of_a_response() -> None:
    clock = FakeClock()
    kube = Kube(clock, {"PATCH /x": [response(200, {"spec": {"replicas": 2}}), response(422, {"message": "no"})]})
    transport, command = (
        KubeTransport(kube, clock),
        KubeCommand("PATCH", "/x", {}, evidence_pointers=("/spec/replicas", "/none")),
    )
    assert transport.send(command).evidence == {"/spec/replicas": 2, "/none": None}
    refused = transport.send(command)
    assert (refused.exit, refused.stderr, refused.evidence) == (422, "the API server answered 422: no", {})


def test_a_command_beyond_the_permissions_is_not_sent() -> None:
    """Each request of a command is compared right before it is sent, those about pods that were just listed, too."""
    clock = FakeClock()
    pod = {"metadata": {"name": "../../secrets/x?y=", "namespace": "a", "uid": "u"}}
    kube = Kube(clock, {"GET /api/v1/namespaces/a/pods": [response(200, {"items": [pod]})]})
    transport = KubeTransport(kube, clock)
    selector = PodSelector(namespace="a", selector="app=web")
    commands: dict[str, ApiCommand] = {
        "PATCH /x": KubeCommand("PATCH", "/x", {}),
        "PATCH /api/v1/nodes/n1": KubeCommand("PATCH", "/api/v1/nodes/n1", {}),
        "delete pods/status": PodsCommand(PodVerb.MARK_DISRUPTION, selector),
        "other namespace": PodsCommand(PodVerb.DELETE, PodSelector(namespace="b", selector="app=web")),
        "no path": PodsCommand(PodVerb.DELETE, selector),
    }
    permissions = [Permission("", "pods", verb, "a") for verb in ("list", "get", "delete")]
    with transport.limited_to(permissions):
        for command in commands.values():
            with pytest.raises(Refused, match="not sent"):
                transport.send(command)
    assert [what for _, what, _ in kube.log if not what.startswith("GET")] == []
