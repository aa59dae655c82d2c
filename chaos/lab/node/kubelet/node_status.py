"""Heartbeats of the kubelet: Node registration, Lease, node status. Facts 1.5 and 5.1."""

from __future__ import annotations

from typing import NamedTuple

from chaos.lab.node.kubelet.admission import Pressure, condition_change_events
from chaos.lab.node.kubelet.apiserver_link import RUNTIME_UNCHECKED, Registration
from chaos.lab.node.kubelet.pod_worker import CAPACITY, VolumeMounts
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import Object, condition_status
from chaos.lab.sim import Timer

_JITTER = 0.04
WINDOWS_BUILD = "10.0.20348"  # Windows Server 2022
_SYSTEMS = {
    "linux": {"kernelVersion": "6.1.0-lab", "osImage": "nodefall lab (simulated)"},
    "windows": {"kernelVersion": f"{WINDOWS_BUILD}.2700", "osImage": "Windows Server 2022 Datacenter (simulated)"},
}


class _Inputs(NamedTuple):
    """All that a status is made from, but for the time. ``machine``: of which few values ever change."""

    errors: list[str]
    short_resources: list[str]
    volumes_in_use: list[str]
    machine: tuple[str | int, ...]


class NodeStatusReporter:
    """Reports the node, Ready unless a shutdown is in progress or the container runtime has been down for long.

    ``registrations``: those to come that are slow; None for one that is not.
    """

    def __init__(self, process: Process, pressure: Pressure, volumes: VolumeMounts) -> None:
        self.registrations: list[Registration | None] = []
        self._registration = Registration(RUNTIME_UNCHECKED, 0.0)
        self._rules = process.rules.node_status
        self._process, self._pressure, self._volumes = process, pressure, volumes
        self._was_schedulable = True
        self._registry = process.registry
        self._report_at = 0.0
        self._runtime_seen_at = process.sim.now
        self._checks_runtime = True
        self._give_up_timer: Timer | None = None
        self._unchanged_node: Object | None = None  # whose status equals one of these inputs, but for heartbeats
        self._unchanged_inputs: _Inputs | None = None
        self._ready_at = 0.0
        self._is_starting = False  # the first status after a reboot is not ready

    def start(self) -> None:
        """Register the node, report it Ready, then renew and report periodically with jitter."""
        process = self._process
        process.after_jitter(0.05, 0.1, self._register)
        process.after_jitter(0.1, 0.15, self._renew)
        process.after_jitter(0.15, 0.3, self._sync)
        process.after(self._rules.runtime_check_period, self._check_runtime)
        process.machine.runtime.on_stop = process.cpu.on_limit = process.on_freeze = self._resume_runtime_checks

    def report_now(self) -> None:
        """Schedule one sync outside the period, for the shutdown manager (facts 1.4)."""
        self._process.after_jitter(0.002, 0.012, self._process.link.send, "status now", self._report)

    def _register(self) -> None:
        self._process.emit_node("Starting", "Starting kubelet.")
        self._process.link.send("node", self._register_node)

    def _register_node(self) -> None:
        machine = self._process.machine
        node = self._registry.store.get("nodes", "", machine.name)
        if node is None:
            self._create_node()
        elif node["status"]["nodeInfo"]["bootID"] != machine.boot_id:
            message = f"Node {machine.name} has been rebooted, boot id: {machine.boot_id}"
            self._process.emit_node("Rebooted", message, type_="Warning")
            self._is_starting = self._rules.unready_after_reboot

    def _create_node(self) -> None:
        registration = self.registrations.pop(0) if self.registrations else None
        if registration is not None:
            self._registration, self._ready_at = registration, self._process.sim.now + registration.seconds
            self._process.at(self._ready_at, self._process.link.send, "status now", self._report)
        self._registry.create("nodes", self._new_node())

    def _renew(self) -> None:
        """Renew the Lease, with retries until it succeeds; the period restarts once that is answered.

        Source: wait.JitterUntil with sliding periods, component-helpers/apimachinery/lease/controller.go.
        """
        self._process.link.send("lease", self._renew_now)

    def _renew_now(self) -> None:
        node = self._registry.store.get("nodes", "", self._process.node)
        if node is not None:
            self._renew_for(node)
        self._process.after(self._period() + self._process.link.answer_delay, self._renew)

    def _renew_for(self, node: Object) -> None:
        store, sim, name = self._registry.store, self._process.sim, self._process.node
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": self._rules.node_lease_duration_seconds,
            "renewTime": sim.micro_timestamp(),
        }
        if store.replace_spec("leases", "kube-node-lease", name, spec) is None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            metadata = {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]}
            self._registry.create("leases", {"metadata": metadata, "spec": spec})

    def _sync(self) -> None:
        if not self._process.link.is_up:
            self._give_up_timer = self._process.after(self._rules.status_update_timeout, self._give_up)
        self._process.link.send("status", self._sync_now)

    def _sync_now(self) -> None:
        if self._give_up_timer is not None:
            self._give_up_timer.cancel()
        self._report()
        self._process.after(self._period() + self._process.link.answer_delay, self._sync)

    def _give_up(self) -> None:
        """Cancel the attempt; the next comes after a period, even if the API server is back before (recording 07)."""
        if self._process.link.cancel("status"):
            self._process.after(self._period(), self._sync)

    def _check_runtime(self) -> None:
        """Check every 5 s whether the runtime answers; a running one that nothing disturbs is taken to answer."""
        process = self._process
        if process.machine.runtime.is_available:
            self._runtime_seen_at = process.sim.now
            self._checks_runtime = process.cpu.share is not None
        if self._checks_runtime:
            process.after(self._rules.runtime_check_period, self._check_runtime)

    def _resume_runtime_checks(self) -> None:
        """Check again, at the times of the checks left out."""
        if not self._checks_runtime:
            passed = self._process.sim.now - self._runtime_seen_at
            self._runtime_seen_at += passed // self._rules.runtime_check_period * self._rules.runtime_check_period
            self._checks_runtime = True
            self._process.at(self._runtime_seen_at + self._rules.runtime_check_period, self._check_runtime)

    def _errors(self) -> list[str]:
        """Reasons why the node is not ready, in the order of SET ReadyCondition."""
        errors, now, runtime = [], self._process.sim.now, self._process.machine.runtime
        if now < self._ready_at:
            errors.append(self._registration.message)
        if self._is_starting:
            errors.append(RUNTIME_UNCHECKED)
            self._is_starting = False
        if self._checks_runtime and now - self._runtime_seen_at > self._rules.runtime_timeout:
            errors.append("container runtime is down")
        silent = 0.0 if runtime.is_available else now - max(runtime.unavailable_since, self._process.start_time)
        if silent > self._rules.relist_threshold:
            ago = f"{int(silent) // 60}m{silent % 60:.9g}s"
            errors.append(f"PLEG is not healthy: pleg was last seen active {ago} ago; threshold is 3m0s")
        if self._process.is_shutting_down and self._rules.unready_in_shutdown:
            errors.append(self._rules.shutting_down_message)
        return errors

    def _period(self) -> float:
        return self._rules.node_status_update_frequency * (1 + _JITTER * self._process.sim.rng.random())

    def _report(self) -> None:
        """Patch the status if it has changed or the report period is over."""
        node = self._registry.store.get("nodes", "", self._process.node)
        if node is None:
            return
        sim, inputs = self._process.sim, self._inputs(node)
        if node is self._unchanged_node and inputs == self._unchanged_inputs and sim.now < self._report_at:
            return
        new = {**node, "metadata": {**node["metadata"]}, "status": {**node["status"]}}
        self._fill(new, inputs)
        self._emit_cordon_event(node)
        changed = _without_heartbeats(new) != _without_heartbeats(node)
        self._unchanged_node, self._unchanged_inputs = None if changed else node, inputs
        if not changed and sim.now < self._report_at:
            return
        frequency, share = self._rules.node_status_report_frequency, self._rules.status_offset
        offset = sim.rng.uniform(-share, share) * frequency if changed and share else 0.0
        self._report_at = sim.now + frequency + offset
        before, after = condition_status(node, "Ready"), condition_status(new, "Ready")
        self._registry.store.update("nodes", new)
        for reason in condition_change_events(node, new, self._process.rules.node_pressure):
            self._process.emit_node(reason, f"Node {self._process.node} status is now: {reason}")
        if before != after:
            reason = "NodeReady" if after == "True" else "NodeNotReady"
            message = f"Node {self._process.node} status is now: {reason}"
            self._process.emit_node(reason, message)

    def _emit_cordon_event(self, node: Object) -> None:
        """Emit an event if spec.unschedulable has changed since the last sync (facts 12)."""
        schedulable = not node["spec"].get("unschedulable")
        if schedulable != self._was_schedulable:
            self._was_schedulable = schedulable
            reason = "NodeSchedulable" if schedulable else "NodeNotSchedulable"
            self._process.emit_node(reason, f"Node {self._process.node} status is now: {reason}")

    def _inputs(self, node: Object) -> _Inputs:
        machine, in_use = self._process.machine, self._volumes.in_use(node)
        identity = (machine.machine_id, machine.system_uuid, machine.boot_id, machine.address, machine.kubelet_port)
        return _Inputs(self._errors(), self._pressure.short_resources(), in_use, (*identity, machine.swap))

    def _fill(self, node: Object, inputs: _Inputs) -> None:
        ready = ("True", *self._rules.ready)
        if errors := inputs.errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            ready = ("False", self._rules.not_ready_reason, text)
        short = inputs.short_resources
        desired = {
            item.condition: ("True", *item.under_pressure[:2]) if kind in short else ("False", *item.no_pressure[:2])
            for kind, item in self._process.rules.node_pressure.signals.items()
        }
        desired["Ready"] = ready
        now = self._process.sim.timestamp()
        status = node["status"]
        old = {item["type"]: item for item in status.get("conditions") or []}
        conditions = []
        for type_, (value, reason, message) in desired.items():
            before = old.pop(type_, None)
            is_same = before is not None and before["status"] == value
            transition = (before.get("lastTransitionTime") if before and is_same else None) or now
            conditions.append(
                {"type": type_, "status": value, "lastHeartbeatTime": now, "lastTransitionTime": transition}
                | {"reason": reason, "message": message}
            )
        status["conditions"] = [*old.values(), *conditions]
        status.update(self._static_status())
        status.pop("volumesInUse", None)
        if inputs.volumes_in_use:
            status["volumesInUse"] = inputs.volumes_in_use

    def _static_status(self) -> Object:
        machine = self._process.machine
        spec = self._process.spec
        version, named = spec.git_version, not spec.has_feature("no-kube-proxy-version")
        return {
            "capacity": CAPACITY | machine.spec.capacity,
            "allocatable": CAPACITY | machine.spec.capacity,
            "addresses": [
                {"type": "InternalIP", "address": machine.address},
                {"type": "Hostname", "address": machine.name},
                *({"type": more.type, "address": more.address} for more in machine.spec.more_addresses),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": machine.kubelet_port}},
            "nodeInfo": {
                "machineID": machine.machine_id,
                "systemUUID": machine.system_uuid,
                "bootID": machine.boot_id,
                **_SYSTEMS[machine.os],
                "containerRuntimeVersion": "containerd://2.1.0",
                "kubeletVersion": version,
                "kubeProxyVersion": version if named else "",
                "operatingSystem": machine.os,
                "architecture": "amd64",
                **({"swap": {"capacity": machine.swap}} if machine.swap and spec.has_feature("swap-reported") else {}),
                **machine.spec.node_info,
            },
        }

    def _new_node(self) -> Object:
        machine, spec = self._process.machine, self._process.machine.spec
        labels = {
            "kubernetes.io/hostname": machine.name,
            "kubernetes.io/os": machine.os,
            "kubernetes.io/arch": "amd64",
            **({"node.kubernetes.io/windows-build": WINDOWS_BUILD} if machine.os == "windows" else {}),
            **({"topology.kubernetes.io/zone": spec.zone} if spec.zone else {}),
        }
        taints: list[Object] = [
            {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
            for taint in (spec.taints if self._rules.registers_with_taints else ())
        ]
        if spec.role == "control-plane":
            labels["node-role.kubernetes.io/control-plane"] = ""
            taints.append({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"})
        metadata: Object = {"name": machine.name, "labels": labels | spec.labels}
        if spec.annotations:
            metadata["annotations"] = dict(spec.annotations)
        ready = {"type": "Ready", "status": "False", "reason": self._rules.not_ready_reason}
        now = self._process.sim.timestamp()
        ready |= {"message": self._registration.message, "lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {"conditions": [ready], **self._static_status()}
        if not self._rules.registers_capacity:
            del status["capacity"], status["allocatable"]
        return {
            "metadata": metadata,
            "spec": {"taints": taints, "providerID": spec.provider_id or f"lab://{machine.name}"},
            "status": status,
        }


def _without_heartbeats(node: Object) -> Object:
    status = dict(node["status"])
    status["conditions"] = [
        {key: value for key, value in item.items() if key != "lastHeartbeatTime"} for item in status["conditions"]
    ]
    return status
