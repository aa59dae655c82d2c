"""Attach-detach controller, with the CSI attacher of its VolumeAttachments. Facts 6 and 7; ADR, ADC.

One operation at a time per volume: while one is pending, the volume is neither attached, nor detached, nor reported
(ADR reconcile and attachDesiredVolumes, IsOperationPending).
"""

from __future__ import annotations

from collections import Counter

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.apiserver.volumes import (
    attachment_name,
    driver_of,
    is_attachable,
    may_attach_to_many,
    needs_volumes,
    unique_name,
    volumes_of,
)
from chaos.lab.objects import (
    Object,
    claims_of,
    condition_status,
    is_deleting,
    name_of,
    namespace_of,
    node_of,
    taints_of,
)
from chaos.lab.sim import Polls, SimClock

_CSI = (0.02, 0.3)  # seconds that the external attacher and the driver take (recordings 31 and 33)
_CHECK = (0.5, 0.55)  # until it first looks: initBackoff, jitter 0.1 (csi_attacher.go waitForVolumeAttachDetachStatus)
AttachmentKey = tuple[str, str]  # volume, node


class AttachDetach:
    """``forced_detaches`` by reason: ``timeout``, also on nodes out of service, and ``out-of-service``."""

    def __init__(self, sim: SimClock, registry: Registry, polls: Polls) -> None:
        self._polls = polls
        self._sim, self._registry, self._store = sim, registry, registry.store
        self._rules = registry.rules.attach_detach
        self._recorder = Recorder(sim, registry.store, "attachdetach-controller")
        self._unneeded_since: dict[AttachmentKey, float] = {}
        self._in_use: dict[str, set[str]] = {}
        self._is_due = False
        self._pending: Counter[AttachmentKey] = Counter()  # operations; the node is empty if only one may have it
        self._process = 0  # number of the process: operations end with it
        self._multi_attach_errors: set[AttachmentKey] = set()
        self.forced_detaches: Counter[str] = Counter()

    def start(self) -> None:
        self._store.subscribe(self._on_change, "nodes", "pods", "persistentvolumeclaims", "volumeattachments")
        self._polls.add(self._loop)

    def restart(self) -> None:
        """Start a new process: the 6 min restart; volumes of deleted nodes count as mounted until reported."""
        self._unneeded_since.clear()
        self._pending.clear()
        self._process += 1
        self._multi_attach_errors.clear()
        self.forced_detaches.clear()
        self._set_due()
        self._resume_attaches()
        self._in_use = {name_of(node): _volumes_in_use(node) for node in self._store.list("nodes")}

    def _resume_attaches(self) -> None:
        """Attach again what the ended process had not yet reported as attached."""
        for attachment in self._store.list("volumeattachments"):
            volume, name = _attachment_key(attachment)
            node = self._store.get("nodes", "", name)
            reported = [item["name"] for item in node["status"].get("volumesAttached") or []] if node else []
            if node and not is_deleting(attachment) and unique_name(self._store, volume) not in reported:
                self._begin((volume, name), name_of(attachment))

    def _on_change(self, change: Change) -> None:
        """Schedule a pass, and record the volumes in use that a node reports; they outlive the node."""
        if change.plural != "nodes":
            if not self._is_due and (change.plural != "pods" or claims_of(change.object)):
                self._set_due()
        elif change.type != "DELETED":
            if change.type == "ADDED":
                self._set_due()
            self._in_use[name_of(change.object)] = _volumes_in_use(change.object)

    def _set_due(self) -> None:
        self._is_due = True
        self._polls.wake()

    def _loop(self) -> bool:
        """Reconcile if due, or in every period while a detach is pending."""
        if self._is_due or self._unneeded_since:
            self._is_due = False
            self._reconcile()
        return self._is_due or bool(self._unneeded_since)

    def _reconcile(self) -> None:
        """Detach and then attach volumes."""
        desired: dict[AttachmentKey, list[Object]] = {}
        for pod in self._pods_with_claims():
            unwanted = is_deleting(pod) and self._rules.clock_starts_at_deletion
            unwanted = unwanted or (not self._rules.waits_for_pods and self._is_out_of_service(node_of(pod)))
            if node_of(pod) and needs_volumes(pod) and not unwanted:
                for volume in volumes_of(self._store, pod):
                    if is_attachable(self._store, volume):
                        desired.setdefault((volume, node_of(pod)), []).append(pod)
        attached = {_attachment_key(item): item for item in self._store.list("volumeattachments")}
        for key in [key for key in self._unneeded_since if key in desired or key not in attached]:
            del self._unneeded_since[key]
        for key, attachment in attached.items():
            if key not in desired and not is_deleting(attachment) and not self._pending[self._operation(*key)]:
                self._detach(key, attachment)
        for key, pods in desired.items():
            if key not in attached and not self._pending[self._operation(*key)]:
                self._attach(key, pods, desired, [other for other in attached if other[0] == key[0]])

    def _pods_with_claims(self) -> list[Object]:
        """Pods with claims, in order of key."""
        claims = self._store.list("persistentvolumeclaims")
        found = [self._store.pods_using(namespace_of(claim), name_of(claim)) for claim in claims]
        users = {(namespace_of(pod), name_of(pod)): pod for pods in found for pod in pods}
        return [users[key] for key in sorted(users)]

    def _detach(self, key: AttachmentKey, attachment: Object) -> None:
        """Detach a volume unless it is mounted; a mounted one from a node out of service, or after 6 min unready."""
        volume, name = key
        elapsed = self._sim.now - self._unneeded_since.setdefault(key, self._sim.now)
        node = self._store.get("nodes", "", name)
        healthy = node is not None and condition_status(node, "Ready") == "True"
        expired = (
            elapsed > self._rules.max_wait_for_unmount_duration and not self._rules.disable_force_detach_on_timeout
        )
        out = self._is_out_of_service(name) and elapsed >= self._rules.out_of_service_delay
        mounted = name not in self._in_use or unique_name(self._store, volume) in self._in_use[name]
        mounted = mounted and self._rules.waits_for_unmount
        may_force = expired and not (healthy and self._rules.forced_detach_needs_unready)
        if mounted and not out and not may_force:
            return
        if expired or out:
            self.forced_detaches["timeout" if expired else "out-of-service"] += 1
        self._set_attached(name, volume, False)
        self._registry.delete("volumeattachments", "", name_of(attachment))
        self._sim.after(self._sim.rng.uniform(*_CSI), self._release, name_of(attachment))
        self._begin(key)

    def _is_out_of_service(self, name: str) -> bool:
        node, taint = self._store.get("nodes", "", name), self._rules.out_of_service_taint
        has_taint = node is not None and any(item["key"] == taint for item in taints_of(node))
        return has_taint and self._rules.heeds_out_of_service

    def _may_attach_to_many(self, volume: str) -> bool:
        return self._rules.attaches_to_many or may_attach_to_many(self._store, volume)

    def _operation(self, volume: str, node: str) -> AttachmentKey:
        return volume, node if self._may_attach_to_many(volume) else ""

    def _begin(self, key: AttachmentKey, attachment: str = "") -> None:
        """Begin a detach, or the attach of ``attachment``, whose end the controller sees a little later."""
        operation = self._operation(*key)
        self._pending[operation] += 1
        self._sim.after(self._sim.rng.uniform(*_CHECK), self._end, self._process, operation, key, attachment)

    def _end(self, process: int, operation: AttachmentKey, key: AttachmentKey, attachment: str) -> None:
        """End an operation of this process."""
        if process != self._process:
            return
        self._pending[operation] -= 1
        self._set_due()
        if attachment:
            self._report_attached(attachment, *key)

    def _release(self, name: str) -> None:
        attachment = self._store.get("volumeattachments", "", name)
        if attachment is not None:
            metadata = {key: value for key, value in attachment["metadata"].items() if key != "finalizers"}
            self._registry.update("volumeattachments", {**attachment, "metadata": metadata})

    def _attach(
        self,
        key: AttachmentKey,
        pods: list[Object],
        desired: dict[AttachmentKey, list[Object]],
        others: list[AttachmentKey],
    ) -> None:
        volume, node = key
        if others and not self._may_attach_to_many(volume):
            if key not in self._multi_attach_errors:
                self._multi_attach_errors.add(key)
                users = [pod for other in others for pod in desired.get(other, [])]
                self._report_multi_attach(volume, pods, users)
            return
        self._multi_attach_errors.discard(key)
        if self._store.get("nodes", "", node) is None:
            return
        name, driver = attachment_name(self._store, volume, node), driver_of(self._store, volume)[0]
        source = {"persistentVolumeName": volume}
        self._store.create(
            "volumeattachments",
            {
                "metadata": {"name": name, "finalizers": [f"external-attacher/{driver.replace('.', '-')}"]},
                "spec": {"attacher": driver, "nodeName": node, "source": source},
                "status": {"attached": False},
            },
        )
        self._sim.after(self._sim.rng.uniform(*_CSI), self._mark_attached, name)
        self._begin(key, name)

    def _mark_attached(self, name: str) -> None:
        """Report the volume as attached, as the external attacher does."""
        attachment = self._store.get("volumeattachments", "", name)
        if attachment is not None and not is_deleting(attachment):
            self._store.patch("volumeattachments", "", name, lambda obj: obj.update(status={"attached": True}))

    def _report_attached(self, name: str, volume: str, node: str) -> None:
        attachment = self._store.get("volumeattachments", "", name)
        if attachment is None or is_deleting(attachment):
            return
        self._set_attached(node, volume, True)
        for pod in self._store.pods_on(node):
            if volume in volumes_of(self._store, pod):
                text = f'AttachVolume.Attach succeeded for volume "{volume}" '
                self._recorder.emit("Pod", pod, "SuccessfulAttachVolume", text)

    def _report_multi_attach(self, volume: str, pods: list[Object], users: list[Object]) -> None:
        """Emit the error on the pods. ADR reportMultiAttachError."""
        for pod in pods:
            near = [name_of(user) for user in users if namespace_of(user) == namespace_of(pod)]
            reason = "Volume is already exclusively attached to one node and can't be attached to another"
            if near:
                reason = f"Volume is already used by pod(s) {', '.join(sorted(near))}"
            text = f'Multi-Attach error for volume "{volume}" {reason}'
            self._recorder.emit("Pod", pod, "FailedAttachVolume", text, type_="Warning")

    def _set_attached(self, node: str, volume: str, attached: bool) -> None:
        """Write volumesAttached of the Node: before a detach, after an attach."""
        name = unique_name(self._store, volume)

        def change(obj: Object) -> None:
            known = [item for item in obj["status"].get("volumesAttached") or [] if item["name"] != name]
            known += [{"name": name, "devicePath": ""}] if attached else []
            obj["status"]["volumesAttached"] = known
            if not known:
                del obj["status"]["volumesAttached"]

        self._store.patch("nodes", "", node, change)


def _attachment_key(attachment: Object) -> AttachmentKey:
    return attachment["spec"]["source"]["persistentVolumeName"], attachment["spec"]["nodeName"]


def _volumes_in_use(node: Object) -> set[str]:
    return set(node.get("status", {}).get("volumesInUse") or [])
