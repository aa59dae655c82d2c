"""A lab in this process, so that one can look inside, and connections to it that can be cut."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

from chaos.app.labs import make_inventory
from chaos.cluster.replica import PREFIX
from chaos.core.clock import RemoteClock
from chaos.lab.hostshell.process import HostSystem
from chaos.lab.hostshell.programs.disks import mountinfo
from chaos.lab.hostshell.programs.units import is_active
from chaos.lab.node.kubelet.metrics import STATE_FILE
from chaos.lab.server.content import ServeOptions
from chaos.lab.server.lab import Lab
from chaos.lab.sim import lockstep
from chaos.lab.spec import LabSpec
from chaos.lab.windows.machine import WindowsMachine
from tests.kit.action_rows import LABS
from tests.kit.contracts import WINDOWS_VICTIMS, use_ssh
from tests.kit.intruder import Intruder
from tests.kit.proxy import Proxy
from tests.kit.windows_snapshot import windows_snapshot

T = TypeVar("T")
LINGER = lockstep.LINGER
PLURALS = {"Deployment": "deployments", "DaemonSet": "daemonsets", "PodDisruptionBudget": "poddisruptionbudgets"}
UNITS = ("kubelet.service", "containerd.service", "systemd-logind.service", "dbus.service")
OBJECTS = ("namespaces", "configmaps", "leases", "deployments", "daemonsets", "statefulsets", "poddisruptionbudgets")
ENDED = ("Succeeded", "Failed")  # what a shutdown leaves of a pod, until the garbage collector comes
SETTLES = 2400.0  # simulated seconds: a DaemonSet waits up to 15 minutes before it tries again where its pods failed
_QUICK = 2000.0  # simulated seconds a wall second, where no connection is awaited
Snapshot = dict[str, Any]


class SweepLab:
    """The nodes, the workload of the contract, and the inventory that reaches it through proxies."""

    def __init__(self, lab: Lab, facts: dict[str, Any], loop: asyncio.AbstractEventLoop, directory: Path) -> None:
        self._lab, self._loop, self._speed = lab, loop, lab.lockstep.speed
        self._proxies: list[Proxy] = []
        self.clock = RemoteClock(facts["timeSource"]["address"], facts["timeSource"]["port"])
        self.intruder = Intruder(Path(facts["kubeconfig"]))  # past the proxies
        self.inventory = self._through_proxies(facts, directory)
        self.pod_inventory = _by_pods(self.inventory)

    def ask(self, what: Callable[[], T]) -> T:
        """Within the lab's own thread."""

        async def call() -> T:
            return what()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)

    def snapshot(self) -> Snapshot:
        """All that an experiment could have left behind."""
        return self.ask(self._collect)

    def leader(self) -> str:
        """The node whose etcd member leads."""
        return self.ask(self._lab.cluster.etcd.leader)

    def settle(self, wanted: Snapshot | None) -> Snapshot:
        """Let time pass until everything is as ``wanted``, or nothing has changed for a minute."""
        with self._quickly():
            return self._settle(wanted)

    def _settle(self, wanted: Snapshot | None) -> Snapshot:
        end, last, since = self.clock.now() + SETTLES, self.snapshot(), self.clock.now()
        while last != wanted and self.clock.now() < end:
            if wanted is None and self.clock.now() - since > 60:
                break
            self.clock.sleep(5.0)
            now = self.snapshot()
            if now != last:
                last, since = now, self.clock.now()
        return last

    def has_replica(self) -> bool:
        """Whether the journal of a run is in the cluster."""
        names = self.ask(lambda: [obj["metadata"]["name"] for obj in self._lab.cluster.store.list("configmaps")])
        return any(name.startswith(PREFIX) for name in names)

    def cut(self) -> None:
        """Nothing answers any more, so that waiting is all that is left to be done."""
        for proxy in self._proxies:
            proxy.cut()
        self._lab.lockstep.speed, lockstep.LINGER = _QUICK, LINGER / 10

    def mend(self) -> None:
        self._lab.lockstep.speed, lockstep.LINGER = self._speed, LINGER
        for proxy in self._proxies:
            proxy.mend()

    @contextmanager
    def _quickly(self) -> Iterator[None]:
        self._lab.lockstep.speed = _QUICK
        try:
            yield
        finally:
            self._lab.lockstep.speed = self._speed

    def pass_time(self, seconds: float, wall: float) -> float:
        """Let ``seconds`` or a few more pass in about ``wall`` seconds, whoever waits; how many they were."""
        begin = now = self.clock.now()
        self._lab.lockstep.speed, self._lab.lockstep.free = seconds / wall, True
        try:
            while (now := self.clock.now()) < begin + seconds:
                time.sleep(wall / 50)
        finally:
            self._lab.lockstep.speed, self._lab.lockstep.free = self._speed, False
        return now - begin

    def close(self) -> None:
        self.intruder.close()
        self.clock.close()
        for proxy in self._proxies:
            proxy.close()

    def _collect(self) -> Snapshot:
        windows = self._lab._windows.servers if self._lab._windows else ()
        found: Snapshot = {}
        for winrm in windows:
            found[f"host {winrm.machine.name}"] = windows_snapshot(winrm.machine, len(winrm.service._shells))
        for ssh, _ in self._lab._hosts:
            if not isinstance(ssh.host.machine, WindowsMachine):
                found[f"host {ssh.host.machine.name}"] = _host(ssh.host)
        for plural in OBJECTS:
            for obj in self._lab.cluster.store.list(plural):
                if value := _object(plural, obj):
                    meta = obj["metadata"]
                    found[f"{plural} {meta.get('namespace', '')}/{meta['name']}"] = value
        found["nodes"] = {node["metadata"]["name"]: _node(node) for node in self._lab.cluster.store.list("nodes")}
        alive = [pod for pod in self._lab.cluster.store.list("pods") if not _is_over(pod)]
        found["pods"] = dict(sorted(Counter(_pod(pod) for pod in alive).items()))
        return found

    def _through_proxies(self, facts: dict[str, Any], directory: Path) -> Path:
        """The API server, the power controls, sshd and WinRM of each host; time needs no network."""
        ports: dict[int, int] = {}

        def port(number: int) -> int:
            if number not in ports:
                self._proxies.append(Proxy(("127.0.0.1", number)))
                ports[number] = self._proxies[-1].port
            return ports[number]

        def url(text: str) -> str:
            head, _, rest = text.removeprefix("https://127.0.0.1:").partition("/")
            return f"https://127.0.0.1:{port(int(head))}{'/' if rest else ''}{rest}"

        config = json.loads(Path(facts["kubeconfig"]).read_text())
        config["clusters"][0]["cluster"]["server"] = url(config["clusters"][0]["cluster"]["server"])
        (directory / "kubeconfig").write_text(json.dumps(config))
        known = Path(facts["knownHosts"]).read_text()
        for host in facts["hosts"]:
            known = known.replace(f"[127.0.0.1]:{host['port']} ", f"[127.0.0.1]:{port(host['port'])} ")
            host["port"] = port(host["port"])
            host["power"]["url"] = url(host["power"]["url"])
            if "winrm" in host:
                host["winrm"]["https"] = url(host["winrm"]["https"])
        (directory / "known_hosts").write_text(known)
        changed = facts | {"kubeconfig": str(directory / "kubeconfig"), "knownHosts": str(directory / "known_hosts")}
        document = make_inventory(changed).model_dump(mode="json", by_alias=True, exclude_none=True)
        if self._lab.cluster.etcd.members:
            document["protected"] = {"roles": []}
        for host in facts["hosts"]:
            if host["node"] == WINDOWS_VICTIMS["ssh"]:
                use_ssh(document, host)
        return _write(directory / "inventory.json", document)


def _by_pods(inventory: Path) -> Path:
    """The same with transport pod."""
    document = json.loads(inventory.read_text())
    document["defaults"] = {"transport": "pod"}
    return _write(inventory.with_name("pods.json"), document)


def _write(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def _host(host: HostSystem) -> Snapshot:
    machine, logind = host.machine, host.machine.logind
    process = machine.kubelet._process
    return {
        "power": machine.state,
        "units": {unit: is_active(host, unit) for unit in UNITS},
        "frozen": process.is_frozen if process else None,
        "nft": sorted(host.tables),
        "dropped": sorted(machine.network.drops()),
        "qdiscs": host.traffic.rows(with_counters=False),
        "impaired": [sorted(machine.network.impairments()), sorted(machine.network.inbound_impairments())],
        "timers": sorted(host.timers),
        "transient": sorted(host.services),
        "run files": sorted(host.run_files),
        "mounts": mountinfo(host),
        "quota": machine.kubelet.cpu.share,
        "swap": machine.swap,
        "files": {path: text for path, text in machine.files.items() if path != STATE_FILE},
        "pressure": sorted(machine.pressure),
        "scheduled": logind.scheduled_shutdown(),
        "preparing": logind.preparing_for_shutdown,
        "inhibitors": sorted((str(i["who"]), str(i["what"]), str(i["mode"])) for i in logind.inhibitors()),
    }


def _create(lab: Lab, workload: Path) -> None:
    for document in yaml.safe_load_all(workload.read_text()):
        document["metadata"]["namespace"] = "default"
        lab.cluster.create_object(PLURALS[document["kind"]], document)


def _node(node: dict[str, Any]) -> Snapshot:
    taints = sorted((t["key"], t.get("value", ""), t["effect"]) for t in node["spec"].get("taints") or ())
    return {
        "labels": node["metadata"].get("labels"),
        "annotations": node["metadata"].get("annotations"),
        "unschedulable": bool(node["spec"].get("unschedulable")),
        "taints": taints,
        "conditions": {c["type"]: c["status"] for c in node["status"]["conditions"]},
    }


def _is_over(pod: dict[str, Any]) -> bool:
    """Ended, or made for a Node that is gone: its DaemonSet takes it away when it looks next, which can be hours."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or ()}
    return pod["status"].get("phase") in ENDED or ("DaemonSet" in owners and not pod["spec"].get("nodeName"))


def _pod(pod: dict[str, Any]) -> str:
    """Without its name: one that was evicted has a successor."""
    meta = pod["metadata"]
    owner = next((o["kind"] for o in meta.get("ownerReferences") or ()), meta["name"])
    conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions") or ()}
    going = "going" if meta.get("deletionTimestamp") else ""
    return f"{meta['namespace']}/{owner} {pod['status'].get('phase')} ready {conditions.get('Ready')} {going}"


def _object(plural: str, obj: dict[str, Any]) -> Any:
    """What of an object its owner specified, and whether that holds. The lock of a process that died is over."""
    status = obj.get("status") or {}
    if plural == "leases":
        ours = obj["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "nodefall"
        return None if ours or obj["metadata"]["name"] == "nodefall" else "a lease"
    counts = {k: v for k, v in status.items() if k in ("replicas", "readyReplicas", "numberReady", "currentHealthy")}
    return {"spec": obj.get("spec"), "data": obj.get("data"), "phase": status.get("phase"), **counts}


@contextmanager
def sweep_lab(directory: Path, workload: Path, speed: float, kind: str = "") -> Iterator[SweepLab]:
    """Up, with its workload available: four Linux nodes. ``kind``: ``windows`` nodes too, three with ``etcd``, or a
    lab for an action of LABS.

    Linux nodes are containers like those of kind, with a new machine ID after each boot; those with etcd are machines.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    (directory / "lab").mkdir(mode=0o700)

    async def begin() -> tuple[Lab, dict[str, Any]]:
        common = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s", "systemd": 252}
        nodes: list[dict[str, Any]] = [{**common, "name": "control-plane", "role": "control-plane"}]
        if kind == "etcd":
            nodes = [{**nodes[0], "name": f"control-plane-{n}", "staticPods": [{"name": "etcd"}]} for n in (1, 2, 3)]
        worker = {**common, **LABS.get(kind, {}), "role": "worker"}
        nodes += [{**worker, "name": f"worker-{number}"} for number in (1, 2, 3)]
        if kind == "windows":
            nodes += [{**common, "name": name, "role": "worker", "os": "windows"} for name in WINDOWS_VICTIMS.values()]
        document = {"nodes": nodes, "seed": 1, "start": 1_790_000_000.0, "machineIdPerBoot": kind != "etcd"}
        spec = LabSpec.from_json(json.dumps(document).encode())
        lab = Lab(spec, ServeOptions(speed=speed), directory / "lab")
        return lab, await lab.start()

    lab, facts = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
    swept = SweepLab(lab, facts, loop, directory)
    try:
        swept.ask(lambda: _create(lab, workload))
        yield swept
    finally:
        swept.close()
        asyncio.run_coroutine_threadsafe(lab.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
