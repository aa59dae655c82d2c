"""Heartbeats of the kubelet: Node registration, Lease, node status. Facts 1.5 and 5.1."""

from __future__ import annotations

from typing import NamedTuple

from chaos.lab.node.kubelet.admission import Pressure, condition_change_events
from chaos.lab.node.kubelet.apiserver_link import RUNTIME_UNCHECKED, Registration
from chaos.lab.node.kubelet.node_object import new_node, reset_spec, restore_registration, static_status
from chaos.lab.node.kubelet.pod_worker import VolumeMounts
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import Object, condition_status, taints_of
from chaos.lab.sim import Timer

_JITTER = 0.04


class _Inputs(NamedTuple):
    """All that a status is made from, except for the time. ``machine``: of which few values ever change."""

    errors: list[str]
    short_resources: list[str]
    volumes_in_use: list[str]
    machine: tuple[str | int, ...]


class NodeStatusReporter:
    """Reports the node, Ready unless a shutdown is in progress or the container runtime has been down for long.

    ``may_register``: whether the kubelet creates its Node, if there is none; ``registration_delay``: before that.
    ``registrations``: those to come that are slow; None for one that is not.
    """

    def __init__(self, process: Process, pressure: Pressure, volumes: VolumeMounts) -> None:
        self.registrations: list[Registration | None] = []
        self.may_register, self.registration_delay = True, 0.0
        self._has_created = False
        self.last_taints: list[list[Object]] = []  # of the Node, as last seen by this kubelet or one before it
        self._registration = Registration(RUNTIME_UNCHECKED, 0.0)
        self._rules = process.rules.node_status
        self._process, self._pressure, self._volumes = process, pressure, volumes
        self._was_schedulable = True
        self._registry = process.registry
        self._report_at = 0.0
        self._runtime_seen_at = process.sim.now
        self._checks_runtime = True
        self._give_up_timer: Timer | None = None
        self._unchanged_node: Object | None = None  # whose status equals one of these inputs, except for heartbeats
        self._unchanged_inputs: _Inputs | None = None
        self._ready_at = 0.0
        self._is_starting = False  # the first status after a reboot is not ready

    def start(self) -> None:
        """Register the node, report it Ready, then renew and report periodically with jitter."""
        process = self._process
        process.after_jitter(self.registration_delay + 0.05, self.registration_delay + 0.1, self._register)
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
        if node is not None and self._rules.restores_registration:
            restore_registration(self._process)
        if node is None:
            if self.may_register:
                self._create_node()
        elif node["status"]["nodeInfo"]["bootID"] != machine.boot_id:
            message = f"Node {machine.name} has been rebooted, boot id: {machine.boot_id}"
            self._process.emit_node("Rebooted", message, type_="Warning")
            self._is_starting = self._rules.unready_after_reboot

    def _create_node(self) -> None:
        self._has_created = True
        registration = self.registrations.pop(0) if self.registrations else None
        if registration is not None:
            self._registration, self._ready_at = registration, self._process.sim.now + registration.seconds
            self._process.at(self._ready_at, self._process.link.send, "status now", self._report)
        node = new_node(self._process, self._registration.message)
        if self._rules.registers_last_taints and self.last_taints:
            node["spec"]["taints"] = self.last_taints[-1]
        self._registry.create("nodes", node)

    def _renew(self) -> None:
        """Renew the Lease, with retries until it succeeds; the period restarts once that is answered.

        Source: wait.JitterUntil with sliding periods, component-helpers/apimachinery/lease/controller.go.
        """
        self._process.link.send("lease", self._renew_now)

    def _renew_now(self) -> None:
        node = self._registry.store.get("nodes", "", self._process.node)
        if node is not None and not self._rules.renews_lease_with_status:
            self._renew_for(node)
        interval = self._rules.node_lease_duration_seconds * self._rules.node_lease_renew_interval_fraction
        self._process.after(self._period(interval) + self._process.link.answer_delay, self._renew)

    def _renew_for(self, node: Object) -> None:
        store, sim, name = self._registry.store, self._process.sim, self._process.node
        namespace = self._rules.lease_namespace
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": self._rules.node_lease_duration_seconds,
            "renewTime": sim.micro_timestamp(),
        }
        if store.replace_spec("leases", namespace, name, spec) is None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
            self._registry.create("leases", {"metadata": metadata, "spec": spec})

    def _sync(self) -> None:
        if not self._process.link.is_up:
            self._give_up_timer = self._process.after(self._rules.status_update_timeout, self._give_up)
        self._process.link.send("status", self._sync_now)

    def _sync_now(self) -> None:
        if self._give_up_timer is not None:
            self._give_up_timer.cancel()
        self._report()
        self._process.after(
            self._period(self._rules.node_status_update_frequency) + self._process.link.answer_delay, self._sync
        )

    def _give_up(self) -> None:
        """Cancel the attempt; the next comes after a period, even if the API server is back before (recording 07)."""
        if self._process.link.cancel("status"):
            self._process.after(self._period(self._rules.node_status_update_frequency), self._sync)

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

    def _period(self, seconds: float) -> float:
        return seconds * (1 + _JITTER * self._process.sim.rng.random())

    def _report(self) -> None:
        """Patch the status if it has changed or the report period is over."""
        node = self._registry.store.get("nodes", "", self._process.node)
        if node is None or not (self._has_created or self._rules.reports_existing_nodes):
            return
        self.last_taints[:] = [taints_of(node)]
        if self._rules.resets_spec:
            node = reset_spec(self._process, node)
        sim, inputs = self._process.sim, self._inputs(node)
        if node is self._unchanged_node and inputs == self._unchanged_inputs and sim.now < self._report_at:
            return
        new = {**node, "metadata": {**node["metadata"]}, "status": {**node["status"]}}
        self._fill(new, inputs)
        self._emit_cordon_event(node)
        changed = self._rules.reports_changes and _without_heartbeats(new) != _without_heartbeats(node)
        self._unchanged_node, self._unchanged_inputs = None if changed else node, inputs
        if not changed and sim.now < self._report_at:
            return
        frequency, share = self._rules.node_status_report_frequency, self._rules.status_offset
        offset = sim.rng.uniform(-share, share) * frequency if changed and share else 0.0
        self._report_at = sim.now + frequency + offset
        before, after = condition_status(node, "Ready"), condition_status(new, "Ready")
        self._registry.store.update("nodes", new)
        if self._rules.renews_lease_with_status:
            self._renew_for(new)
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
        is_busy = bool(self._rules.usage_subtracted_from) and "cpu" in machine.pressure
        return _Inputs(self._errors(), self._pressure.short_resources(), in_use, (*identity, machine.swap, is_busy))

    def _fill(self, node: Object, inputs: _Inputs) -> None:
        ready = ("True", *self._rules.ready)
        if errors := inputs.errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            ready = ("False", self._rules.not_ready_reason, text)
        short = inputs.short_resources if self._process.rules.node_pressure.reports_conditions else []
        pressure = self._process.rules.node_pressure
        absent = pressure.no_pressure_status
        desired = {
            item.condition: ("True", *item.under_pressure[:2]) if kind in short else (absent, *item.no_pressure[:2])
            for kind, item in pressure.signals.items()
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
        status.update(static_status(self._process))
        status.pop("volumesInUse", None)
        if inputs.volumes_in_use:
            status["volumesInUse"] = inputs.volumes_in_use


def _without_heartbeats(node: Object) -> Object:
    status = dict(node["status"])
    status["conditions"] = [
        {key: value for key, value in item.items() if key != "lastHeartbeatTime"} for item in status["conditions"]
    ]
    return status
