"""Fleets of labs: a game day, an inventory for each lab, and a stand-in kubelet that runs the Jobs."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chaos.cluster.client import ApiClient, connect
from chaos.cluster.cluster_state import cluster_uid
from chaos.core.clock import RemoteClock
from chaos.core.command import MERGE_PATCH
from chaos.core.errors import NodefallError
from tests.kit.gamedays import left_behind, write_day
from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import WALL, environment, lab

IMAGE = "registry.example.com/nodefall@sha256:" + "0" * 64
HEAD = {"apiVersion": "nodefall.dev/v1alpha1"}
NO_CODES: Mapping[str, int] = {}
NO_BREAKAGES: Mapping[str, str] = {}
_STARTS_AT_ONCE = 4
_KINDS = "jobs,pods,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,networkpolicies,configmaps"


@dataclass(frozen=True, slots=True)
class FleetLab:
    """A lab of the fleet. ``inventory``: as the lab has written it."""

    name: str
    folder: Path
    inventory: Path
    kubelet: JobKubelet

    def applied(self) -> list[str]:
        """What a fleet has applied and not deleted, as KIND/NAME, besides the volume and its namespace."""
        kubectl = Kubectl(json.loads(self.inventory.read_text())["cluster"]["kubeconfig"], self.folder)
        return kubectl("get", _KINDS, "-A", "-l", "nodefall.dev/fleet", "-o", "name").split()

    def left_behind(self) -> list[str]:
        """What is left of faults and locks."""
        expected = ("configmap/nodefall-gameday-europe.fleet", "namespace/nodefall")
        return [name for name in left_behind(self.inventory, self.folder) if name not in expected]


@contextmanager
def fleet_labs(
    folder: Path, names: list[str], broken: Mapping[str, int] = NO_CODES, breakages: Mapping[str, str] = NO_BREAKAGES
) -> Iterator[dict[str, FleetLab]]:
    """Labs with a stand-in kubelet each. By the name of the lab: ``broken``: the exit code of pods that fail at once;
    ``breakages``: a defect of the lab."""

    def begin(stack: ExitStack, number: int, name: str) -> FleetLab:
        home = folder / "labs" / name
        home.mkdir(parents=True)
        defect = ("--breakage", breakages[name]) if name in breakages else ()
        inventory = stack.enter_context(lab(home, "--seed", str(number), *defect))
        kubelet = stack.enter_context(JobKubelet(inventory, folder / "pods" / name, broken.get(name)))
        return FleetLab(name, home, inventory, kubelet)

    with ExitStack() as stack, ThreadPoolExecutor(_STARTS_AT_ONCE) as pool:
        stacks = [stack.enter_context(ExitStack()) for _ in names]  # each is used by one thread
        yield dict(zip(names, pool.map(begin, stacks, range(len(names)), names), strict=True))


def write_inventories(folder: Path, labs: dict[str, FleetLab]) -> None:
    """An inventory for each lab, as those of real clusters: with expectUID, and paths beside the file."""
    for name, each in labs.items():
        document = json.loads(each.inventory.read_text())
        cluster = document["cluster"]
        kube = connect(cluster["kubeconfig"])
        uid = cluster_uid(kube)
        kube.close()
        place = folder / f"{name}.kube"
        place.mkdir()
        shutil.copy(cluster["kubeconfig"], place / "config")
        wanted = {key: cluster[key] for key in ("simulated", "timeSource")}
        settings = {"kubeconfig": f"{name}.kube/config", "expectUID": uid, **wanted}
        write_json(
            folder / f"{name}.json", {**HEAD, "kind": "Inventory", "metadata": {"name": name}, "cluster": settings}
        )


def write_fleet(folder: Path, names: list[str], entries: list[str], **spec: Any) -> Path:
    """A fleet of these clusters, and its game day with an entry for each name. ``spec``: other keys of the fleet."""
    write_day(folder, entries)
    clusters = [{"name": name, "inventory": f"{name}.json"} for name in names]
    spec = {"gameday": "day.yaml", "image": IMAGE, "clusters": clusters} | spec
    document = {**HEAD, "kind": "Fleet", "metadata": {"name": "europe"}, "spec": spec}
    return write_json(folder / "fleet.yaml", document)


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    return path


_LABEL = "batch.kubernetes.io/job-name"
_POLL = 0.3  # wall seconds
_LAB_SLEEP = 1.0  # seconds of the lab's time, which stands still unless somebody waits for it
_PATHS = re.compile(r"(?<![\w/])/(?:etc/nodefall|reports)\b")


class JobKubelet:
    """Runs the pods of Jobs in one lab. ``broken``: exit code of pods that fail before they do anything."""

    def __init__(self, inventory: Path, folder: Path, broken: int | None = None) -> None:
        self._cluster = json.loads(inventory.read_text())["cluster"]
        self._kube: ApiClient = connect(self._cluster["kubeconfig"])
        self._folder, self._broken = folder, broken
        self.processes: dict[str, subprocess.Popen[bytes]] = {}  # by the pod's UID
        self.pods: list[str] = []  # names, in the order in which they began
        self.spans: dict[str, tuple[float, float]] = {}  # by the pod's UID: when its process was seen to run
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors: list[str] = []

    def __enter__(self) -> JobKubelet:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(WALL)
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(WALL)
        self._kube.close()

    def kill(self) -> None:
        """As if the machine of the pod lost its power: every process of a pod dies at once."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*/log")))

    def _run(self) -> None:
        source = self._cluster["timeSource"]
        clock = RemoteClock(source["address"], source["port"])
        try:
            while not self._ended.wait(_POLL):
                try:
                    if self._sync():
                        clock.sleep(_LAB_SLEEP)  # the lab's controllers and kubelets need time
                        clock.release()
                except NodefallError as error:
                    self.errors.append(error.message)
        finally:
            clock.close()

    def _sync(self) -> bool:
        """Start and end what is due; whether the lab has a Job that has not ended, or pods."""
        pods = self._list("/api/v1/pods", {"labelSelector": _LABEL})
        known = {pod["metadata"]["uid"] for pod in pods}
        for pod in pods:
            metadata, status = pod["metadata"], pod.get("status") or {}
            is_deleted = "deletionTimestamp" in metadata
            process = self.processes.get(metadata["uid"])
            if process is None and status.get("phase") == "Running" and not is_deleted:
                self.processes[metadata["uid"]] = self._start(pod)
                self.pods.append(metadata["name"])
            elif process is not None and process.poll() is not None and not is_deleted:
                self._report(metadata, process.returncode)
        now = time.monotonic()
        for uid, process in self.processes.items():
            begun, ended = self.spans.get(uid, (now, now))
            self.spans[uid] = (begun, now if process.poll() is None else ended)
            if uid not in known and process.poll() is None:
                process.send_signal(signal.SIGTERM)  # the pod was deleted
        jobs = self._list("/apis/batch/v1/jobs", {})
        return bool(pods) or any(not (job.get("status") or {}).get("conditions") for job in jobs)

    def _report(self, metadata: dict[str, Any], code: int) -> None:
        """The container has ended: the lab's kubelet stops it with this exit code."""
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        code = code if code >= 0 else 128 - code
        annotations = {"lab.nodefall.dev/exit-code": str(code), "lab.nodefall.dev/stops-after": "0"}
        self._kube.request("PATCH", path, body={"metadata": {"annotations": annotations}}, content_type=MERGE_PATCH)
        self._kube.request("DELETE", path, body={"kind": "DeleteOptions", "gracePeriodSeconds": 5})

    def _start(self, pod: dict[str, Any]) -> subprocess.Popen[bytes]:
        root = self._folder / pod["metadata"]["name"]
        root.mkdir()
        (container,) = pod["spec"]["containers"]
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        places = {"/etc/nodefall": f"{root}/etc/nodefall", "/reports": str(root)}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            if "projected" in volume:
                self._project(pod, volume["projected"], root, mount["mountPath"])
            elif "persistentVolumeClaim" in volume:  # outlives the pod
                claim = self._folder / "claims" / volume["persistentVolumeClaim"]["claimName"]
                claim.mkdir(parents=True, exist_ok=True)
                places[mount["mountPath"]] = str(claim)
        variables = self._variables(pod, container, root)
        arguments = [_PATHS.sub(lambda match: places[match[0]], _expand(text, variables)) for text in container["args"]]
        command = [sys.executable, "-m", "chaos", *arguments]
        if self._broken is not None:
            command = [sys.executable, "-c", f"raise SystemExit({self._broken})"]
        with (root / "log").open("wb") as log:
            return subprocess.Popen(
                command, cwd=root, env=environment(root) | variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _variables(self, pod: dict[str, Any], container: dict[str, Any], root: Path) -> dict[str, str]:
        found = {}
        for each in container["env"]:
            path = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            label = re.fullmatch(r"metadata\.labels\['(.+)'\]", path)
            if label:
                found[each["name"]] = pod["metadata"]["labels"][label[1]]
            elif path == "metadata.uid":
                found[each["name"]] = pod["metadata"]["uid"]
            else:
                found[each["name"]] = each["value"]
        return found | {"HOME": f"{root}{found['HOME']}"}

    def _project(self, pod: dict[str, Any], projected: dict[str, Any], root: Path, mount: str) -> None:
        namespace = pod["metadata"]["namespace"]
        for source in projected["sources"]:
            for kind, plural in (("configMap", "configmaps"), ("secret", "secrets")):
                if kind not in source:
                    continue
                path = f"/api/v1/namespaces/{namespace}/{plural}/{source[kind]['name']}"
                data = json.loads(self._kube.request("GET", path).body)["data"]
                for item in source[kind]["items"]:
                    text = data[item["key"]]
                    raw = base64.b64decode(text) if kind == "secret" else text.encode()
                    self._write(root / mount.lstrip("/") / item["path"], raw)

    def _write(self, path: Path, raw: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if b"kubernetes.default.svc" in raw:
            raw = self._in_cluster(raw)
        path.write_bytes(raw)
        path.chmod(0o440)

    def _in_cluster(self, raw: bytes) -> bytes:
        """The kubeconfig of the pod, with what DNS and the ServiceAccount's token would be: those of the lab."""
        document, lab = yaml.safe_load(raw), yaml.safe_load(Path(self._cluster["kubeconfig"]).read_text())
        document["clusters"][0]["cluster"] = lab["clusters"][0]["cluster"]
        document["users"][0]["user"] = lab["users"][0]["user"]
        return json.dumps(document).encode()

    def _list(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._kube.request("GET", path, query).body).get("items") or []
        return found


def _expand(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda match: variables[match[1]], text)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process, and wait for it."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=WALL)
