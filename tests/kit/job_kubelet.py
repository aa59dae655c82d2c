"""A stand-in for the kubelet and the container runtime of a lab: it runs the pods of Jobs as processes of this machine.

The lab has Jobs, their controller, a scheduler and kubelets, but no containers. What a pod's container would have (its
files, variables and arguments) is taken from the pod, the ConfigMaps and the Secrets on the API server; paths of the
container become paths below a directory. The exit code goes back to the lab's kubelet by an annotation of the lab, so
that the pod's status and the Job's end are the lab's own.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from chaos.cluster.client import ApiClient, connect
from chaos.core.clock import RemoteClock
from chaos.core.command import MERGE_PATCH
from chaos.core.errors import NodefallError
from tests.kit.processes import WALL, environment

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
