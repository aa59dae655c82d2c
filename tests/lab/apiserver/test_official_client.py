"""The official Python client, unchanged, against a free-running lab: watches, resumption, 410, informer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import kubernetes
import kubernetes.informer
import pytest

from tests.kit.processes import until

pytestmark = pytest.mark.lab
official: Any = kubernetes  # its helpers are not typed
TIMEOUT = 20.0  # wall seconds
Make = Callable[..., Any]


@pytest.fixture
def ten(make_lab: Make) -> Any:
    return make_lab("--speed", "10")


@pytest.fixture
def core(ten: Any) -> Any:
    return client_of(ten)


def client_of(lab: Any) -> Any:
    configuration = official.client.Configuration()
    official.config.load_kube_config(lab.facts["kubeconfig"], client_configuration=configuration)
    return official.client.CoreV1Api(official.client.ApiClient(configuration))


def create(core: Any, name: str, **data: str) -> None:
    metadata = official.client.V1ObjectMeta(name=name)
    core.create_namespaced_config_map("default", official.client.V1ConfigMap(metadata=metadata, data=data))


def change(core: Any, name: str, **data: str) -> None:
    core.patch_namespaced_config_map(name, "default", {"data": data})


def version(core: Any) -> str:
    return str(core.list_namespaced_config_map("default").metadata.resource_version)


def stream(core: Any, source: Any, count: int, **options: Any) -> Iterator[tuple[str, str]]:
    """The first ``count`` events of ConfigMaps: type and name."""
    for event in source.stream(core.list_namespaced_config_map, "default", **options):
        yield event["type"], event["object"].metadata.name
        count -= 1
        if count == 0:
            source.stop()


def test_a_watch_is_resumed_where_it_ended(make_lab: Make) -> None:
    """The lab ends watches early again and again; Watch resumes, and each event comes once."""
    core = client_of(make_lab("--speed", "10", apiMisbehaviours=["end", "split", "line-breaks"]))
    since, source = version(core), official.watch.Watch()

    def write() -> None:
        create(core, "a")
        for number in range(80):
            change(core, "a", n=str(number))

    thread = threading.Thread(target=write)
    thread.start()
    options = {"resource_version": since, "allow_watch_bookmarks": True, "_request_timeout": TIMEOUT}
    seen = list(stream(core, source, 81, **options))
    thread.join()
    assert seen == [("ADDED", "a"), *[("MODIFIED", "a")] * 80]
    assert source.resource_version == version(core)


def test_the_end_of_a_watch_is_the_end_of_its_stream(core: Any) -> None:
    create(core, "a")
    assert list(stream(core, official.watch.Watch(), 99, timeout_seconds=10)) == [("ADDED", "a")]


def test_selectors_and_nodes(ten: Any, core: Any) -> None:
    source, seen = official.watch.Watch(), []
    for event in source.stream(core.list_node, field_selector="metadata.name=w1", _request_timeout=TIMEOUT):
        seen.append(event["object"])
        core.patch_node("w1", {"spec": {"unschedulable": True}})
        if event["object"].spec.unschedulable:
            source.stop()
    assert {node.metadata.name for node in seen} == {"w1"}


def test_gone_is_an_api_exception(make_lab: Make) -> None:
    core = client_of(make_lab("--speed", "10", "--ring", "3"))
    since = version(core)
    create(core, "a")
    for number in range(5):
        change(core, "a", n=str(number))
    with pytest.raises(official.client.ApiException) as refused:
        list(stream(core, official.watch.Watch(), 1, resource_version=since, _request_timeout=TIMEOUT))
    assert refused.value.status == 410
    assert "too old resource version" in refused.value.reason


@pytest.mark.parametrize("switches", [[], ["gone", "end"], ["gone-http", "end", "null-bookmarks"]])
def test_the_informer_follows(make_lab: Make, switches: list[str]) -> None:
    core = client_of(make_lab("--speed", "10", apiMisbehaviours=switches))
    # stop() waits for the end of the watch, that is for the resync period: 20 simulated seconds are 2 s
    informer = official.informer.SharedInformer(core.list_namespaced_config_map, "default", resync_period=20)
    handled: list[tuple[str, str]] = []
    for type_ in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(type_, lambda obj, type_=type_: handled.append((type_, obj.metadata.name)))
    create(core, "before")
    informer.start()
    try:
        until(lambda: informer.cache.get_by_key("default/before") is not None)
        for number in range(40):
            create(core, f"m{number}", n="0")
            change(core, f"m{number}", n="1")
            if number % 2:
                core.delete_namespaced_config_map(f"m{number}", "default")
        wanted = {"default/before", *(f"default/m{number}" for number in range(0, 40, 2))}
        until(lambda: set(informer.cache.list_keys()) == wanted)
        until(lambda: all(informer.cache.get_by_key(f"default/m{n}").data == {"n": "1"} for n in range(0, 40, 2)))
    finally:
        informer.stop()
    assert ("ADDED", "m0") in handled
    if not switches:
        assert handled.count(("DELETED", "m1")) == 1
