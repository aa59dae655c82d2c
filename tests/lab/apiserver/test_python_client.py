"""The official Python client, unchanged, on a free-running lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def connected(free_lab: Any) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(free_lab.facts["kubeconfig"]) as found:  # type: ignore[no-untyped-call]
        yield found


@pytest.fixture
def core(connected: Any) -> Any:
    return client.CoreV1Api(connected)


def refused(call: Callable[..., Any], *arguments: Any) -> tuple[int, str]:
    """Status and reason of an error."""
    with pytest.raises(client.ApiException) as caught:
        call(*arguments)
    return caught.value.status, caught.value.reason


def pod(name: str) -> client.V1Pod:
    spec = client.V1PodSpec(
        containers=[client.V1Container(name="c", image="busybox")], node_name="w2", termination_grace_period_seconds=2
    )
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels={"app": "py"}), spec=spec)


def watched(call: Callable[..., Any], **selectors: str) -> Iterator[Any]:
    watcher: Any = watch.Watch()  # type: ignore[no-untyped-call]
    yield from watcher.stream(call, "default", timeout_seconds=600, _request_timeout=60, **selectors)


def seen(core: Any, wanted: Callable[[str, Any], bool]) -> bool:
    """Whether a matching event of the labelled pods comes."""
    events = watched(core.list_namespaced_pod, label_selector="app=py")
    return any(wanted(event["type"], event["object"]) for event in events)


def test_a_pod_is_created_watched_patched_and_evicted(core: Any) -> None:
    created = core.create_namespaced_pod("default", pod("one"))
    assert created.metadata.uid
    assert created.spec.containers[0].image == "busybox"
    assert seen(core, lambda type_, obj: obj.status.phase == "Running")
    listed = core.list_namespaced_pod("default", label_selector="app=py", field_selector="spec.nodeName=w2")
    assert [item.metadata.name for item in listed.items] == ["one"]
    patched = core.patch_namespaced_pod("one", "default", {"metadata": {"labels": {"tier": "a"}}})
    assert patched.metadata.labels == {"app": "py", "tier": "a"}
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="one"))
    core.create_namespaced_pod_eviction("one", "default", eviction)
    assert seen(core, lambda type_, obj: type_ == "DELETED")
    assert refused(core.read_namespaced_pod, "one", "default") == (404, "Not Found")


def test_an_eviction_against_a_budget_is_refused(core: Any, connected: Any) -> None:
    selector = client.V1LabelSelector(match_labels={"app": "py"})
    budget = client.V1PodDisruptionBudget(
        metadata=client.V1ObjectMeta(name="py"),
        spec=client.V1PodDisruptionBudgetSpec(min_available=1, selector=selector),
    )
    policy = client.PolicyV1Api(connected)
    policy.create_namespaced_pod_disruption_budget("default", budget)
    core.create_namespaced_pod("default", pod("kept"))
    assert seen(core, lambda type_, obj: obj.status.phase == "Running")
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="kept"))
    assert refused(core.create_namespaced_pod_eviction, "kept", "default", eviction)[0] == 429
    policy.delete_namespaced_pod_disruption_budget("py", "default")
    core.delete_namespaced_pod("kept", "default", grace_period_seconds=0)
    assert refused(core.read_namespaced_pod, "kept", "default")[0] == 404


def test_nodes_are_cordoned_by_the_default_patch(core: Any) -> None:
    assert core.patch_node("w2", {"spec": {"unschedulable": True}}).spec.unschedulable
    assert core.patch_node("w2", {"spec": {"unschedulable": None}}).spec.unschedulable is None


def test_a_changed_object_conflicts(core: Any) -> None:
    made = core.create_namespaced_config_map(
        "default", client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="py-"), data={"a": "1"})
    )
    assert made.metadata.name.startswith("py-")
    made.data["a"] = "2"
    core.replace_namespaced_config_map(made.metadata.name, "default", made, dry_run="All")
    assert core.replace_namespaced_config_map(made.metadata.name, "default", made).data == {"a": "2"}
    made.data["a"] = "3"
    assert refused(core.replace_namespaced_config_map, made.metadata.name, "default", made) == (409, "Conflict")
    core.delete_namespaced_config_map(made.metadata.name, "default")


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_deletion_with_propagation(connected: Any, policy: str) -> None:
    name = f"py-{policy.lower()}"
    apps: Any = client.AppsV1Api(connected)
    labels = {"app": name}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c")], termination_grace_period_seconds=1),
    )
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=template)
    apps.create_namespaced_deployment(
        "default", client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)
    )
    assert apps.patch_namespaced_deployment_scale(name, "default", {"spec": {"replicas": 2}}).spec.replicas == 2
    for event in watched(apps.list_namespaced_deployment, field_selector=f"metadata.name={name}"):
        if event["type"] == "DELETED":
            break
        if event["object"].status.ready_replicas == 2 and not event["object"].metadata.deletion_timestamp:
            apps.delete_namespaced_deployment(name, "default", propagation_policy=policy)
    else:
        pytest.fail("the Deployment stayed")
    left = apps.list_namespaced_replica_set("default", label_selector=f"app={name}").items
    assert policy == "Background" or not left
