"""Marks on Nodes, and types of the fields of state records, for names that reach a command.

Marks are annotations that name the step whose fault is in the Node object, and the values before the fault. The request
that is the fault sets the mark, and the request that undoes the fault removes it. So a Node shows its pending undo also
when every journal is lost. A mark holds no commands.

A state may come from a ConfigMap that anyone has written: a value is validated when the record is decoded, so that an
undo names no option, no path and no other object than its action meant.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from chaos.core.action import FactCheck, Target
from chaos.core.api_fact import condition_status, field, node_path, object_fact, taint_value
from chaos.core.field_types import BLOCK_DEVICE, CRASH_TOOL, DISK_UNIT, DNS_NAME, MOUNT_OPTIONS, MOUNT_POINT, NODE_UNIT
from chaos.core.kube_names import DNS_LABEL, OBJECT_NAME, ConditionStatus, ConditionType, PreviousTaints
from chaos.core.text import on_node

# Units that no undo starts: of those of systemd only what actions stop, as others take the machine down.
_MACHINE_UNITS = "systemd-(?!logind|timesyncd)[^.@]*|emergency|rescue|debug-shell"
OwnName = Annotated[str, Meta(pattern=r"\Anodefall-[A-Za-z0-9-]{1,240}\Z")]  # of an object that a step creates
UnitName = Annotated[str, Meta(pattern=rf"\A(?!(?:{_MACHINE_UNITS})[.@-])[A-Za-z0-9_][A-Za-z0-9:_.\\@-]*\.service\Z")]
# An undo restarts them, and there are units that end in a reboot.
NodeUnit = Annotated[str, Meta(pattern=rf"\A{NODE_UNIT}\Z")]
DiskUnit = Annotated[str, Meta(pattern=rf"\A(?:{DISK_UNIT})\Z")]
WindowsService = Annotated[str, Meta(pattern=r"\A(?:kubelet|containerd|w32time|vmictimesync)\Z")]
CrashTool = Annotated[str, Meta(pattern=rf"\A(?:{CRASH_TOOL})\Z")]
Tag = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9-]{0,199}\Z")]  # of Target
# A file of the kubelet's certificate store: client-go, util/certificate/certificate_store.go.
ClientCertificate = Annotated[str, Meta(pattern=r"\A/var/lib/kubelet/pki/kubelet-client-[0-9-]{1,40}\.pem\Z")]
FileMode = Annotated[str, Meta(pattern=r"\A[0-7]{3,4}\Z")]
FileOwner = Annotated[str, Meta(pattern=r"\A[0-9]{1,10}:[0-9]{1,10}\Z")]  # of UID and GID
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
MountPoint = Annotated[str, Meta(pattern=rf"\A{MOUNT_POINT}\Z")]
BlockDevice = Annotated[str, Meta(pattern=rf"\A{BLOCK_DEVICE}\Z")]
DeviceNumber = Annotated[str, Meta(pattern=r"\A[0-9]{1,4}:[0-9]{1,7}\Z")]
MountOptions = Annotated[str, Meta(pattern=rf"\A{MOUNT_OPTIONS}\Z")]  # of a mount that is not read-only
InterfaceName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}\Z")]
TrafficFilterKey = Annotated[str, Meta(pattern=r"\A(?:protocol (?:ip|ipv6) pref 2004[789])?\Z")]
LookupName = Annotated[str, Meta(pattern=rf"\A(?:{DNS_NAME})?\Z")]
RunName = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,99}\Z")]
StepName = Annotated[str, Meta(pattern=rf"\A{DNS_LABEL}\Z")]
NodeName = Annotated[str, Meta(pattern=r"\A[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")]
CpuQuantity = Annotated[str, Meta(pattern=r"\A[0-9]{1,12}m\Z")]
WorkloadPath = Annotated[
    str,
    Meta(pattern=rf"\A/apis/apps/v1/namespaces/{DNS_LABEL}/(?:deployments|statefulsets|daemonsets)/{OBJECT_NAME}\Z"),
]
BudgetPath = Annotated[
    str, Meta(pattern=rf"\A/apis/policy/v1/namespaces/{DNS_LABEL}/poddisruptionbudgets/{OBJECT_NAME}\Z")
]
PREFIX = "pending-undo.nodefall.dev/"  # of annotations; a step has one on each of its nodes


class StepOrigin(Struct, frozen=True):
    """The run and the step that an action is prepared for."""

    run: RunName
    step: StepName


def origin_of(target: Target) -> StepOrigin | None:
    """The origin of marks of the step; None without a run, as in a table of a plug-in's tests."""
    return StepOrigin(target.run, target.tag.removeprefix(f"{target.run}-")) if target.run else None


class NodeMark(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A step, and what it changed of the Node: the values before it.

    ``cordoned`` is None if the step does not change it. ``taints`` are values by ``KEY:EFFECT``, ``conditions`` the
    statuses by type; None for what was absent. ``created``: the step created the Node.
    """

    run: RunName
    step: StepName
    cordoned: bool | None = None
    taints: PreviousTaints = {}
    conditions: dict[ConditionType, ConditionStatus | None] = {}
    created: bool = False

    @property
    def key(self) -> str:
        """Name of the annotation: one for each step of a run."""
        return PREFIX + hashlib.sha256(f"{self.run}/{self.step}".encode()).hexdigest()[:10]

    def to_annotations(self) -> dict[str, str | None]:
        """The annotations that set the mark, for a merge patch."""
        return {self.key: msgspec.json.encode(self).decode()}

    def to_removal(self) -> dict[str, str | None]:
        """The annotations that remove the mark, for a merge patch."""
        return {self.key: None}

    def removed_check(self, node: str) -> FactCheck:
        """The check that the mark is not on the Node."""
        pointer = self.key.replace("~", "~0").replace("/", "~1")
        return FactCheck(object_fact(node_path(node), f"/metadata/annotations/{pointer}"), None)


def decode_mark(key: str, value: str) -> NodeMark | None:
    """The mark in an annotation; None if it is damaged or from a newer version, so that the pending undo is unknown."""
    try:
        mark = msgspec.json.decode(value, type=NodeMark)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return mark if mark.key == key else None


class FoundMark(Struct, frozen=True):
    """An annotation of a Node. ``mark`` is None if it is unreadable; ``version`` is the Node's resourceVersion.

    ``commands`` restore the values before the step, by hand and in order; none if the Node has them already.
    """

    node: str
    key: str
    mark: NodeMark | None
    version: str
    commands: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether the Node has the values from before the step, as after kubectl uncordon: nothing is to be undone."""
        return self.mark is not None and not self.commands

    @property
    def by_hand(self) -> str:
        """The commands that restore the Node and remove the mark, in a shell."""
        is_deleted = self.mark is not None and self.mark.created and self.commands  # and the mark with it
        return "; ".join((*self.commands, *(() if is_deleted else (self.removal,))))

    @property
    def removal(self) -> str:
        """The command that removes the mark alone."""
        return f"kubectl annotate node {shlex.quote(self.node)} {shlex.quote(f'{self.key}-')}"

    def __str__(self) -> str:
        return on_node(self.mark.step if self.mark else "an unknown step", self.node)


def found_marks(node: Mapping[str, Any]) -> Iterator[FoundMark]:
    """The marks on a Node, which is as in the API."""
    metadata = node.get("metadata") or {}
    name = str(metadata.get("name", ""))
    for key, value in sorted((metadata.get("annotations") or {}).items()):
        if key.startswith(PREFIX):
            mark = decode_mark(key, value)
            commands = tuple(_restoring_commands(mark, name, node)) if mark else ()
            yield FoundMark(name, key, mark, str(metadata.get("resourceVersion", "")), commands)


def _restoring_commands(mark: NodeMark, name: str, node: Mapping[str, Any]) -> Iterator[str]:
    quoted = shlex.quote(name)
    if mark.created:
        if not field(node, "/status/nodeInfo/machineID"):  # a kubelet may write any mark on its own Node
            yield f"kubectl delete node {quoted}"
        return
    if mark.cordoned is not None and mark.cordoned != bool(field(node, "/spec/unschedulable")):
        yield f"kubectl {'cordon' if mark.cordoned else 'uncordon'} {quoted}"
    for taint, value in mark.taints.items():
        if taint_value(node, taint) != value:
            key, _, effect = taint.rpartition(":")
            change = f"{taint}-" if value is None else f"{key}={value}:{effect}"
            yield f"kubectl taint node {quoted} {shlex.quote(change)}" + ("" if value is None else " --overwrite")
    for type_, status in mark.conditions.items():
        if condition_status(node, type_) != status:
            condition = {"type": type_, **({"$patch": "delete"} if status is None else {"status": status})}
            patch = msgspec.json.encode({"status": {"conditions": [condition]}}).decode()
            yield f"kubectl patch node {quoted} --subresource=status --type=strategic -p {shlex.quote(patch)}"
