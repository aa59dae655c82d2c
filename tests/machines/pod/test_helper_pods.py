"""Helper pods: what is created, when it is replaced, what it says of its host, and what is left of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.cluster.client import ApiClient
from chaos.core.clock import SystemClock
from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.ports import Response
from chaos.machines.pod import helpers, session
from chaos.machines.pod.helpers import Helper, HelperPods
from chaos.machines.pod.manifest import PodOptions, removal
from chaos.machines.pod.session import HelperSlot, PodSession
from chaos.machines.sessions.host_keys import HostKeyPin
from tests.kit.exec_server import Document, ExecServer, exec_server

ECHO = HostCommand(("echo", "hello"))


@dataclass
class Link:
    server: ExecServer
    api: ApiClient
    pods: HelperPods
    session: PodSession


@pytest.fixture
def link() -> Iterator[Link]:
    with exec_server() as server, closing(SystemClock()) as clock, closing(server.client()) as api:
        pods = HelperPods(api, clock, "kube-system")
        options = PodOptions.model_validate({"readyTimeout": "1s", "image": "registry.example.com/busybox:1"})
        yield Link(server, api, pods, PodSession(HelperSlot("worker-1", pods, options), api))


@pytest.mark.parametrize("is_fragmented", [False, True])
def test_a_node_cannot_fill_the_memory_with_one_message(
    link: Link, monkeypatch: pytest.MonkeyPatch, is_fragmented: bool
) -> None:
    monkeypatch.setattr("chaos.cluster.exec_stream._MAX_MESSAGE", 1 << 20)
    link.server.flood = [1 << 19] * 5 if is_fragmented else [3 << 20]
    outcome = link.session.run(ECHO)
    assert outcome.delivery is not Delivery.ANSWERED
    link.server.flood = [1 << 19]
    assert link.session.run(ECHO).delivery is not Delivery.LOST


def test_the_pod_is_root_on_its_node_and_has_no_rights_in_the_cluster(link: Link) -> None:
    link.pods.run = "drain-1a2b3c"
    assert link.session.run(ECHO).stdout == "hello\n"
    (pod,) = link.server.pods.values()
    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    assert (spec["nodeName"], spec["hostPID"], spec["hostNetwork"]) == ("worker-1", True, True)
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["activeDeadlineSeconds"] == 4 * 3600
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example.com/busybox:1", "IfNotPresent")
    assert container["securityContext"] == {"privileged": True}
    assert not {"volumes", "serviceAccountName", "initContainers", "ephemeralContainers"} & set(spec), (
        "it mounts nothing"
    )
    assert set(container) == {"name", "image", "imagePullPolicy", "command", "securityContext"}
    assert pod["metadata"]["labels"]["nodefall.dev/run"] == "drain-1a2b3c"


def test_one_pod_serves_all_sessions_of_its_node(link: Link) -> None:
    shared = HelperSlot("worker-1", link.pods, PodOptions())
    for _ in range(3):
        assert PodSession(shared, link.api).run(ECHO).exit == 0
    assert len(link.server.pods) == 1


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (
            403,
            'the pod is forbidden: violates PodSecurity "baseline:latest": privileged',
            "kubectl label namespace kube-system --overwrite pod-security.kubernetes.io/enforce=privileged",
        ),
        (403, 'pods is forbidden: User "ann" cannot create resource "pods"', "nodefall rbac --inventory FILE"),
        (404, 'namespaces "kube-system" not found', "kubectl create namespace kube-system"),
        (422, "no PriorityClass with name x was found", "priorityClass of its options"),
    ],
)
def test_a_pod_that_is_not_admitted(link: Link, status: int, message: str, hint: str) -> None:
    link.server.refusal = status, message
    with pytest.raises(Refused) as refused:
        link.session.connect()
    assert refused.value.message == f"worker-1: its helper pod is not admitted to namespace kube-system: {message}"
    assert hint in refused.value.hint


# What API servers of v1.36.2 answered.
_BASELINE = (
    'is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true, hostPID=true), '
    'privileged (container "host" must not set securityContext.privileged=true)'
)


def test_the_same_refusal_reads_the_same_on_all_nodes(link: Link) -> None:
    """A generated name in it would make it another one on each node for doctor, which groups them."""
    said = set()
    for name in ("jsxx6", "z78rt"):
        link.server.refusal = 403, f'pods "nodefall-host-{name}" {_BASELINE}'
        with pytest.raises(Refused) as refused:
            link.session.connect()
        said.add(refused.value.message)
        assert "pod-security.kubernetes.io/enforce=privileged" in refused.value.hint
    assert said == {f"worker-1: its helper pod is not admitted to namespace kube-system: the pod {_BASELINE}"}


def test_an_image_that_cannot_be_pulled(link: Link) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
    link.server.status = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    with pytest.raises(Unreachable, match='is not Ready: ImagePullBackOff: Back-off pulling image "x"'):
        link.session.connect()
    assert link.server.pods == {}


def test_a_pod_that_does_not_become_ready(link: Link) -> None:
    link.server.status = {"phase": "Pending"}
    with pytest.raises(Unreachable, match="is not Ready after 1 s: its phase is Pending"):
        link.session.connect()
    assert link.server.pods == {}


@pytest.mark.parametrize(
    ("took", "after", "made"),
    [
        (60.0, (0.0, 1.0, 2.0), 1),  # the tries of one command
        (60.0, (0.0, 9.0, 11.0), 2),
        (1.0, (0.0, 1.0, 2.0), 3),  # a quick failure costs nothing
    ],
)
def test_who_asks_again_at_once_does_not_wait_again(
    link: Link, monkeypatch: pytest.MonkeyPatch, took: float, after: tuple[float, ...], made: int
) -> None:
    """doctor tries each of two commands three times: that was six minutes, where no pod could run on a node."""
    now, calls = [0.0], []

    def create(node: str, _: PodOptions) -> Helper:
        calls.append(node)
        now[0] += took
        raise Unreachable(f"{node}: the pod is not Ready", hint="check image")

    monkeypatch.setattr(link.pods, "create", create)
    monkeypatch.setattr(link.pods, "now", lambda: now[0])
    shared = HelperSlot("worker-1", link.pods, PodOptions())
    for pause in after:
        now[0] += pause
        with pytest.raises(Unreachable, match="the pod is not Ready") as failed:
            shared.get()
        assert failed.value.hint == "check image"
    assert len(calls) == made


def test_on_a_node_that_is_not_ready_no_pod_is_made(link: Link) -> None:
    link.server.ready = "Unknown"
    outcome = link.session.run(ECHO)
    assert outcome.delivery is Delivery.NOT_SENT
    assert "worker-1 is not Ready (its condition is Unknown): its kubelet starts no pod" in outcome.error
    assert link.server.requests == []


def test_on_a_node_that_is_full_no_pod_is_made(link: Link) -> None:
    """Its kubelet would end another pod to admit a critical one."""
    running: Document = {"metadata": {"labels": {}}, "status": {"phase": "Running"}}
    link.server.pods = {"web-1": running, "web-2": running, "job-1": running | {"status": {"phase": "Succeeded"}}}
    link.server.room = 2
    with pytest.raises(Refused, match="worker-1 has 2 pods, and room for 2: to start a helper pod its kubelet would"):
        link.session.connect()
    assert link.server.requests == []
    link.server.room = 3
    assert link.session.run(ECHO).stdout == "hello\n"


@pytest.mark.parametrize("end", ["gone", "failed"])
def test_a_pod_that_has_ended_is_replaced(link: Link, end: str) -> None:
    """As after a graceful shutdown of its node."""
    assert link.session.run(ECHO).exit == 0
    (first,) = link.server.pods
    if end == "gone":
        link.server.pods.clear()
    else:
        link.server.pods[first]["status"] = {"phase": "Failed"}
        link.server.exec_error = 'unable to upgrade connection: container not found ("host")'
        outcome = link.session.run(ECHO)
        assert outcome.delivery is Delivery.NOT_SENT
        link.server.exec_error = ""
    assert link.session.run(ECHO).stdout == "hello\n"
    assert first not in link.server.pods
    assert len(link.server.pods) == 1


def test_a_pod_on_another_machine_gets_no_command(link: Link) -> None:
    pin = HostKeyPin()
    pin.expect("machine 0123456789abcdef0123456789abcdef")
    session = PodSession(HelperSlot("worker-1", link.pods, PodOptions()), link.api, pin)
    with pytest.raises(Refused, match="a different machine: it presents the host key machine"):
        session.arm(ECHO)


@pytest.mark.parametrize("change", ["another", "none", "empty"])
def test_a_machine_that_takes_the_place_of_the_pods_host_gets_no_command(
    link: Link, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Node that was made again under its name: the pod, and its connection, are those of before."""
    ran, machine = tmp_path / "ran", tmp_path / "machine-id"
    machine.write_text("0123456789abcdef0123456789abcdef")
    monkeypatch.setattr(session, "_REPORT_MACHINE", session._REPORT_MACHINE.replace("/etc/machine-id", str(machine)))
    assert link.session.run(ECHO).stdout == "hello\n"
    machine.write_text("fedcba9876543210fedcba9876543210\n" if change == "another" else "")
    if change == "none":
        machine.unlink()
    outcome = link.session.run(HostCommand(("touch", str(ran))))
    assert outcome.delivery is Delivery.NOT_SENT
    assert ("a different machine" if change == "another" else "nothing identifies its host") in outcome.error
    assert not ran.exists()


def test_a_machine_behind_a_new_pod_is_verified_again(link: Link) -> None:
    assert link.session.run(ECHO).exit == 0
    before = link.server.requests.count("exec")
    link.server.pods.clear()
    assert link.session.run(ECHO).exit == 0
    assert link.server.requests.count("exec") - before == 2  # in vain, the command


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("error dialing backend: dial tcp 10.0.0.1:10250: connect: no route to host", "from the API server to the"),
        ('exec: "nsenter": executable file not found in $PATH', "the image needs sh, sleep and nsenter"),
    ],
)
def test_an_exec_that_fails_was_not_sent(link: Link, words: str, hint: str) -> None:
    link.server.exec_error = words
    outcome = link.session.run(ECHO)
    assert outcome.delivery is Delivery.NOT_SENT
    assert words in outcome.error
    assert hint in outcome.error


def test_programs_are_those_of_the_host_and_not_of_the_image(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of an image, which the programs of exec inherit, means nothing on the host."""
    monkeypatch.setenv("PATH", "/image/bin")
    monkeypatch.setenv("LD_PRELOAD", "")
    outcome = link.session.run(HostCommand(("sh", "-c", 'echo "$PATH"; env')))
    path, *variables = outcome.stdout.splitlines()
    assert outcome.exit == 0
    assert {"/usr/sbin", "/sbin", "/usr/local/sbin"} <= set(path.split(":"))
    assert "/image/bin" not in path
    assert not any(line.startswith("LD_PRELOAD") for line in variables)


def test_an_exec_that_is_forbidden(link: Link) -> None:
    link.server.exec_refusal = 403, 'User "ann" cannot get resource "pods/exec"'
    outcome = link.session.run(ECHO)
    assert outcome.delivery is Delivery.NOT_SENT
    assert 'User "ann" cannot get resource "pods/exec"' in outcome.error
    assert "nodefall rbac" in outcome.error


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (
            403,
            "Forbidden (user=kube-apiserver-kubelet-client, verb=get, resource=nodes, subresource(s)=[proxy])\n",
            "exec: 403 from the kubelet: Forbidden (user=kube-apiserver-kubelet-client, verb=get, resource=nodes, su",
        ),
        (
            500,
            'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing"',
            "exec: 500 rpc error: code = Unavailable desc = connection error",
        ),
    ],
)
def test_what_the_kubelet_answers_to_exec_is_reported(link: Link, status: int, text: str, said: str) -> None:
    """As kubelets of v1.36.2 did, in plain text, through the API server."""
    link.server.kubelet_refusal = status, text
    outcome = link.session.run(ECHO)
    assert outcome.delivery is Delivery.NOT_SENT
    assert said in outcome.error
    assert ("ClusterRole system:kubelet-api-admin" in outcome.error) is (status == 403)


def test_an_api_server_that_cannot_be_reached(link: Link) -> None:
    assert link.session.run(ECHO).exit == 0
    link.server.url = ""
    link.api._access = replace(link.api._access, server="https://127.0.0.1:1")
    outcome = link.session.run(ECHO)
    assert outcome.delivery is Delivery.NOT_SENT
    assert "https://127.0.0.1:1: connection refused" in outcome.error


def test_pods_of_other_processes_are_neither_used_nor_removed(link: Link) -> None:
    assert link.session.run(ECHO).exit == 0
    (other,) = link.server.pods
    with closing(SystemClock()) as clock:
        pods = HelperPods(link.api, clock, "kube-system")
        assert PodSession(HelperSlot("worker-1", pods, PodOptions()), link.api).run(ECHO).exit == 0
        assert len(link.server.pods) == 2
        assert pods.remove() == []
    assert list(link.server.pods) == [other]


def test_an_undo_removes_the_pods_of_all_processes_of_its_run(link: Link) -> None:
    """Of the run, which died before its journal named them, and of an undo that died; not those of another run."""
    with closing(SystemClock()) as clock:
        for run in ("drain-1", "drain-1", "drain-2"):
            dead = HelperPods(link.api, clock, "kube-system")
            dead.run = run
            dead.create("worker-1", PodOptions())
        (*_, other) = link.server.pods
        link.pods.take_over("drain-1", ["kube-system"])
        assert link.session.run(ECHO).exit == 0
        assert len(link.server.pods) == 4
        assert link.pods.remove() == []
    assert list(link.server.pods) == [other]


def test_what_does_not_end_is_named(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    assert link.session.run(ECHO).exit == 0
    (name,) = link.server.pods
    monkeypatch.setattr(helpers, "REMOVAL_SECONDS", 0.0)
    monkeypatch.setattr(HelperPods, "delete", lambda _self, _helper: None)
    assert link.pods.remove() == [f"pod kube-system/{name} on worker-1 has not ended (not deleted)"]


def test_one_pod_that_cannot_be_deleted_does_not_keep_the_others(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    delete, first = HelperPods.delete, link.pods.create("worker-1", PodOptions())
    link.pods.create("worker-1", PodOptions())

    def fail_for_first(pods: HelperPods, helper: Helper) -> None:
        if helper == first:
            raise NodefallError("500: etcdserver: request timed out")
        delete(pods, helper)

    monkeypatch.setattr(HelperPods, "delete", fail_for_first)
    monkeypatch.setattr(helpers, "REMOVAL_SECONDS", 1.0)
    (left,) = link.pods.remove()
    assert left.startswith(str(first))
    assert left.endswith("500: etcdserver: request timed out")
    assert list(link.server.pods) == [first.name]


def test_a_pod_that_is_just_being_made_is_removed_too(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is no longer awaited makes it while the command ends."""
    request, removed = link.api.request, Future[list[str]]()
    thread = threading.Thread(target=lambda: removed.set_result(link.pods.remove()))

    def slow(method: str, path: str, *args: Any, **kwargs: Any) -> Response:
        if method == "POST":
            thread.start()
            thread.join(1.0)
        return request(method, path, *args, **kwargs)

    monkeypatch.setattr(link.api, "request", slow)
    link.session.run(ECHO)
    assert removed.result(10) == []
    assert link.server.pods == {}
    assert "because they are being removed" in link.session.run(ECHO).error


def test_without_pods_no_request_is_made(link: Link) -> None:
    assert link.pods.remove() == []
    assert link.server.requests == []


def test_an_undo_that_waits_names_the_pod_that_is_left() -> None:
    ours = "/api/v1/namespaces/nodefall/pods?labelSelector=nodefall.dev/transport%3Dpod%2Cnodefall.dev/run%3Dr1"
    undo = removal("nodefall", "r1")
    assert [str(step.command) for step in undo.steps] == [f"DELETE {ours}"]
    assert [str(check) for check in undo.proof] == [f"object{ours}#/items/0/metadata/name is None"]


def test_what_a_host_sees_of_exec(link: Link) -> None:
    assert link.session.peer() == {"address": "0.0.0.0/0", "port": 10250}


def test_the_errors_of_the_server_are_those_of_nodefall(link: Link) -> None:
    link.server.refusal = 500, "etcdserver: request timed out"
    with pytest.raises(NodefallError, match="cannot be created in namespace kube-system: 500: etcdserver"):
        link.session.connect()
