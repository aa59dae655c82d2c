"""Clients of one watch of all pods: ``python benchmarks/watch_clients.py CLIENT KUBECONFIG`` runs one of them.

It prints ``synced`` when it has, receives until a line of stdin names the last resourceVersion, and prints its figures
as JSON once that has arrived. The CPU time is that from the first event to the last, of all threads.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from chaos.api import load
from chaos.cli.output import tune_gc
from chaos.cluster.client import connect
from chaos.cluster.observers.cluster import ClusterObservers
from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.watch_codec import ListPage, split_lines
from chaos.core.clock import SystemClock
from chaos.core.decode import decode
from chaos.core.kube import RESOURCES, Pod
from chaos.core.ports import Observer, Sink
from chaos.core.recording import BOOKMARK, LIST, DecodedEntry, RecordingEntry
from chaos.core.redaction import register_secret
from chaos.core.store.recording_writer import RecordingWriter
from chaos.engine.live_judge import LiveJudge
from chaos.engine.recorder import Recorder
from chaos.verdicts.judge.context import Options

EXPERIMENT = Path(__file__).parent.parent / "experiments" / "graceful-poweroff.yaml"
VICTIM = "node-7"  # some of the pods are on it
PATH = "/api/v1/pods"
TIMEOUT = 20.0  # seconds without the last event


class Receiver:
    """When each version was received, and the CPU time of this process."""

    def __init__(self) -> None:
        self.received: dict[int, float] = {}
        self.events = 0
        self.cpu = 0.0

    def __call__(self, version: str) -> None:
        if not self.events:
            self.cpu = time.process_time()
        self.events += 1
        self.received[int(version)] = time.monotonic()

    def figures(self, last: int) -> dict[str, Any]:
        """The figures, when the last version has arrived."""
        deadline = time.monotonic() + TIMEOUT
        while last not in self.received and time.monotonic() < deadline:
            time.sleep(0.001)
        cpu = time.process_time() - self.cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"cpu": cpu, "events": self.events, "received": list(self.received.items()), "memory": memory}


Client = Callable[[str, Callable[[], None], Receiver], None]


class _Event(msgspec.Struct):
    type: str
    object: Pod


def raw(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """The least there is to do: urllib3, lines, one decoder for the fields that nodefall uses, and a dict."""
    api, cache = connect(kubeconfig), dict[tuple[str, str], Pod]()
    events, pages, pods = msgspec.json.Decoder(_Event), msgspec.json.Decoder(ListPage), msgspec.json.Decoder(Pod)
    query = {"limit": "500"}
    while True:
        page = pages.decode(api.request("GET", PATH, query).body)
        for item in page.items or ():
            pod = pods.decode(item)
            cache[pod.metadata.namespace, pod.metadata.name] = pod
        if not page.metadata.continue_:
            break
        query["continue"] = page.metadata.continue_
    synced()
    with api.stream(PATH, {"watch": "true", "resourceVersion": page.metadata.resource_version}) as chunks:
        for line in split_lines(chunks):
            event = events.decode(line)
            metadata = event.object.metadata
            cache[metadata.namespace, metadata.name] = event.object
            receive(metadata.resource_version)


def observer(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """nodefall's observer of pods alone: the cache, and an entry of a recording for each event."""
    _observe([Reflector(RESOURCES["pods"], connect(kubeconfig), SystemClock())], lambda _: None, synced, receive)


def recording(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """As in a run without a judge: all observers of a cluster, the recorder, and the recording."""
    _run(kubeconfig, lambda _: None, synced, receive)


def everything(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """As in a run: with the judge once a second, too.

    The watches are proven current as if no expectation asked about pods: the lab's time hardly goes on, and the replays
    that a run makes every 10 s, for at most 2 % of a CPU, would take minutes.
    """
    _run(kubeconfig, _start_judge, synced, receive)


def _run(
    kubeconfig: str, start_judge: Callable[[Recorder], None], synced: Callable[[], None], receive: Receiver
) -> None:
    tune_gc()
    register_secret("the password of some BMC")
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as folder, RecordingWriter(Path(folder) / "recording.jsonl.gz") as writer:
        recorder = Recorder(decode, clock, writer.write)
        recorder.emit(_entry("meta", "recording", {"format": 1, "targets": {VICTIM: "victim"}}))
        watches = ClusterObservers(connect(kubeconfig), clock).watches

        def on_sync() -> None:
            start_judge(recorder)
            synced()

        _observe(watches, recorder.emit, on_sync, receive)


def _start_judge(recorder: Recorder) -> None:
    judge = LiveJudge(load(EXPERIMENT), recorder, Options(namespace="default"))
    recorder.emit(_entry("action", "poweroff", {"step": "power-off", "phase": "begin"}, VICTIM))
    judge.judge(live=True)  # imports what it needs

    def judge_every_second() -> None:
        while True:
            time.sleep(1)
            judge.judge(live=True)

    threading.Thread(target=judge_every_second, daemon=True).start()


def _observe(watches: Any, sink: Sink, synced: Callable[[], None], receive: Receiver) -> None:
    def both(entry: RecordingEntry) -> None:
        sink(entry)
        if isinstance(entry, DecodedEntry) and entry.kind == "pods" and entry.type not in (LIST, BOOKMARK):
            receive(entry.value.metadata.resource_version)

    observers: list[Observer] = list(watches)
    for each in observers:
        each.start(both)
    while not all(each.has_synced() for each in observers):
        time.sleep(0.05)
    synced()
    threading.Event().wait()


def _entry(kind: str, type_: str, value: object, node: Any = msgspec.UNSET) -> RecordingEntry:
    return RecordingEntry(time.time(), kind, type_, msgspec.Raw(msgspec.json.encode(value)), node)


def _version(kubeconfig: str) -> str:
    """The resourceVersion of all pods, from which the other libraries watch; they keep no cache here."""
    page = connect(kubeconfig).request("GET", PATH, {"limit": "1"}).body
    return msgspec.json.decode(page, type=ListPage).metadata.resource_version


def official(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """The official client's typed watch."""
    library: Any = import_module("kubernetes")  # untyped
    library.config.load_kube_config(kubeconfig)
    api, version = library.client.CoreV1Api(), _version(kubeconfig)
    synced()
    for event in library.watch.Watch().stream(api.list_pod_for_all_namespaces, resource_version=version):
        receive(event["object"].metadata.resource_version)


def kr8s(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """kr8s's watch."""
    library: Any = import_module("kr8s")
    api, version = library.api(kubeconfig=kubeconfig), _version(kubeconfig)
    synced()
    for _, pod in api.watch("pods", namespace=library.ALL, since=version):
        receive(pod.metadata.resourceVersion)


def lightkube(kubeconfig: str, synced: Callable[[], None], receive: Receiver) -> None:
    """lightkube's typed watch."""
    library: Any = import_module("lightkube")
    pod_type = import_module("lightkube.resources.core_v1").Pod
    client, version = library.Client(config=library.KubeConfig.from_file(kubeconfig)), _version(kubeconfig)
    synced()
    for _, pod in client.watch(pod_type, namespace="*", resource_version=version):
        receive(pod.metadata.resourceVersion)


CLIENTS: dict[str, tuple[str, Client]] = {
    "raw": ("urllib3 + msgspec", raw),
    "observer": ("nodefall, observer of pods", observer),
    "recording": ("nodefall, all observers and recording", recording),
    "everything": ("nodefall, all observers, recording and judge", everything),
    "kubernetes": ("official client", official),
    "kr8s": ("kr8s", kr8s),
    "lightkube": ("lightkube", lightkube),
}


def main() -> None:
    """Run one client."""
    client, receive = CLIENTS[sys.argv[1]][1], Receiver()
    is_synced = threading.Event()
    thread = threading.Thread(target=client, args=(sys.argv[2], is_synced.set, receive), daemon=True)
    thread.start()
    while not is_synced.wait(0.1):
        if not thread.is_alive():
            raise SystemExit(1)
    print("synced", flush=True)
    print(json.dumps(receive.figures(int(sys.stdin.readline()))), flush=True)


if __name__ == "__main__":
    main()
