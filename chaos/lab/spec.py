"""LabSpec: the description of a simulated cluster, in JSON with camel-case keys. Unknown keys are errors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import msgspec

from chaos.lab import breakages, versions
from chaos.lab.objects import parse_quantity
from chaos.lab.rules import Rules
from chaos.lab.users import UserSpec

DEFAULT_NAMESPACES = ["default", "kube-system", "kube-public", "kube-node-lease"]
_REQUIRED_NAMESPACES = frozenset({"default", "kube-system", "kube-node-lease"})
ADMIN = "kubernetes-admin"  # the user with all permissions
_USER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,62}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# What every machine has the same: clones of one image have its machine ID and host keys, containers one boot ID.
SharedIdentity = Literal["machine-id", "system-uuid", "boot-id", "host-key"]
PerBoot = Literal["container-id", "host-key", "address"]
OperatingSystem = Literal["linux", "windows"]
ApiMisbehaviour = Literal[
    "cut",
    "torn",
    "end",
    "end-at-once",
    "endless",
    "half-open",
    "slow-answers",
    "split",
    "gone",
    "gone-http",
    "line-breaks",
    "null-lists",
    "null-bookmarks",
    "idle-bookmarks",
    "legacy-events",
]


class SpecError(ValueError):
    """The LabSpec cannot be simulated."""


class Taint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""


class PriorityGrace(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    priority: int
    shutdown_grace_period_seconds: int


class StaticPod(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A pod from a file in /etc/kubernetes/manifests. ``stops_after``: seconds from SIGTERM to the exit."""

    name: str
    namespace: str = "kube-system"
    labels: dict[str, str] = {}
    priority_class_name: str = ""
    termination_grace_period_seconds: int = 30
    stops_after: float = 0.0
    exit_code: int = 0


class NodeAddress(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    type: Literal["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"]
    address: str


class NodeSpec(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """One machine with its kubelet. ``address`` and ``kubelet_port`` as its Node object reports them.

    Servers listen on ``address`` if it is a loopback address. sshd listens on ``ssh_port``; 0 means any free port.
    ``provider_id``, ``annotations``, ``node_info`` and ``more_addresses`` are those of the Node object, as they differ
    between distributions; ``node_info`` replaces values such as osImage and kubeletVersion.

    ``boot_seconds``: from the power button to the start of the kubelet; 0 for a random time from 5 to 10 s.
    ``kubelet_service`` on Windows: a real service, or a program under nssm. ``kubelet_depends``: on which services.
    ``preshutdown_timeout``: what an administrator sets after each start of the kubelet; empty if none does.
    """

    name: str
    os: OperatingSystem = "linux"
    role: Literal["control-plane", "worker"] = "worker"
    zone: str = ""
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    register_node: bool = True
    shutdown_grace_period: str = "30s"
    shutdown_grace_period_critical_pods: str = "10s"
    shutdown_grace_period_by_pod_priority: list[PriorityGrace] = []
    feature_gates: dict[str, bool] = {}  # of the kubelet
    systemd: int = 252
    logind: bool = True
    logind_drop_ins: dict[str, int] = {}  # name in /usr/lib/systemd/logind.conf.d to InhibitDelayMaxSec
    static_pods: list[StaticPod] = []
    # kernel.panic: seconds until a crashed machine boots again, 0 for never; the kubelet sets 10 (setupKernelTunables)
    panic_timeout: int = 10
    address: str = ""
    ssh_port: int = 0
    provider_id: str = msgspec.field(default="", name="providerID")  # empty: lab://NAME
    annotations: dict[str, str] = {}
    node_info: dict[str, str] = {}
    more_addresses: list[NodeAddress] = []
    kubelet_port: int = 10250
    kubelet_verbosity: int = 2  # --v; at 0, kubeadm's default, the kubelet logs nothing of a shutdown
    boot_seconds: float = 0.0
    capacity: dict[str, str] = {}  # of cpu, memory, pods, where the lab's default does not fit
    swap: str = ""  # quantity such as 2Gi, in /etc/fstab: active after each boot
    swapped_off: bool = False  # by hand before the lab starts: inactive until the next boot
    fail_swap_on: bool = True  # the kubelet does not start while swap is on
    kubelet_service: Literal["service", "nssm"] = "service"
    kubelet_depends: list[str] = msgspec.field(default_factory=lambda: ["containerd"])
    preshutdown_timeout: str = ""


class ControllerSpec(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Settings of kube-controller-manager and API server, in seconds and nodes per second. Facts 5.2, 5.6 and 7.

    ``node_monitor_grace_period``: 0 for the version's default, which the LabSpec puts in its place.
    ``taints_within_pass`` is no setting, but a race that a controller manager on a busy machine loses.
    """

    node_monitor_period: float = 5.0
    node_monitor_grace_period: float = 0.0
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    terminated_pod_gc_threshold: int = 12500
    disable_force_detach_on_timeout: bool = False
    taints_within_pass: bool = False
    allocate_node_cidrs: bool = False


class LabSpec(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A whole lab. ``start``: seconds since the epoch. ``api_misbehaviours``: see http/fault_injection.py.

    ``kubernetes``: a version such as v1.33 or v1.33.4; what it changes is in versions.py.
    ``kubelet_identity``: what on a host names its Node, the kubelet's client certificate or its flag.
    ``machine_id_per_boot``: hosts with Linux are containers whose entry point writes a new machine ID at each start, as
    that of kind does. ``per_boot``: what else changes with each boot; an address only of a node without
    ``address``. ``power_lies``: power controls answer as if they had acted, and do nothing.
    """

    nodes: list[NodeSpec]
    kubernetes: str = versions.DEFAULT
    dual_stack: bool = True
    controllers: ControllerSpec = msgspec.field(default_factory=ControllerSpec)
    inhibitor_lost_after_cancel: Literal["always", "never", "seeded"] = "seeded"
    breakages: list[str] = []  # ids of chaos.lab.breakages
    seed: int = 1
    start: float = 1_795_000_000.0
    api_misbehaviours: list[ApiMisbehaviour] = []
    namespaces: list[str] = msgspec.field(default_factory=lambda: list(DEFAULT_NAMESPACES))
    users: list[UserSpec] = []
    shared_identity: list[SharedIdentity] = []
    kubelet_identity: Literal["certificate", "hostname-override", "none"] = "certificate"
    machine_id_per_boot: bool = False
    per_boot: list[PerBoot] = []
    power_lies: bool = False

    def __post_init__(self) -> None:
        """Set what follows from the version. Raises ValueError for one that is not simulated."""
        if not self.controllers.node_monitor_grace_period:
            grace = 50.0 if self.has_feature("long-grace-period") else 40.0
            self.controllers = msgspec.structs.replace(self.controllers, node_monitor_grace_period=grace)

    @classmethod
    def from_json(cls, data: bytes) -> LabSpec:
        """Decode and check a LabSpec. Raises SpecError."""
        try:
            spec = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SpecError(f"LabSpec: {error}") from error
        spec.check()
        return spec

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def git_version(self) -> str:
        """The version that the components report."""
        return versions.git_version(self.kubernetes)

    def has_feature(self, feature: str) -> bool:
        """Whether the version has this difference of chaos.lab.versions."""
        return feature in versions.features_of(self.kubernetes)

    def rules(self) -> Rules:
        """The rules of this version with these settings, and with the replacements of ``breakages``."""
        flags = {field: getattr(self.controllers, field) for field in self.controllers.__struct_fields__}
        rules = Rules()
        for component in ("node_lifecycle", "pod_gc", "attach_detach", "api_server"):
            record = getattr(rules, component)
            found = {field: value for field, value in flags.items() if hasattr(record, field)}
            rules = replace(rules, **{component: replace(record, **found)})
        volumes, windows = map(self.has_feature, ("volumes-awaited", "windows-graceful-shutdown"))
        shutdown = replace(rules.node_shutdown, waits_for_volumes=volumes, windows_graceful_node_shutdown=windows)
        offset = rules.node_status.status_offset if self.has_feature("report-offset") else 0.0
        status = replace(rules.node_status, status_offset=offset)
        return breakages.broken(replace(rules, node_shutdown=shutdown, node_status=status), self.breakages)

    def check(self) -> None:
        """Check what types cannot express. Raises SpecError."""
        names = [node.name for node in self.nodes]
        if not names:
            raise SpecError("LabSpec: nodes is empty")
        if len(set(names)) < len(names):
            raise SpecError("LabSpec: two nodes have the same name")
        if missing := _REQUIRED_NAMESPACES - set(self.namespaces):
            raise SpecError(f"LabSpec: namespaces lacks {', '.join(sorted(missing))}")
        _check_users(self.users)
        for node in self.nodes:
            _check_node(node)
        try:
            breakages.check(self.breakages)
        except ValueError as error:
            raise SpecError(f"LabSpec: {error}") from error


def _check_users(users: list[UserSpec]) -> None:
    names, tokens = [user.name for user in users], [user.token for user in users if user.token]
    for name in names:
        if not _USER_NAME.fullmatch(name) or name.startswith("system:") or name == ADMIN:
            raise SpecError(f"LabSpec: {name!r} is not a valid user name")
    if len(set(names)) < len(names) or len(set(tokens)) < len(tokens):
        raise SpecError("LabSpec: two users have the same name or token")


def _check_node(node: NodeSpec) -> None:
    total, critical = (
        parse_duration(node.shutdown_grace_period),
        parse_duration(node.shutdown_grace_period_critical_pods),
    )
    if critical > total:
        raise SpecError(f"LabSpec: {node.name}: shutdownGracePeriodCriticalPods is longer than shutdownGracePeriod")
    if 0 < total < 1 or 0 < critical < 1:
        raise SpecError(f"LabSpec: {node.name}: a shutdown grace period is 0 or at least 1 s")
    if node.shutdown_grace_period_by_pod_priority and total:
        raise SpecError(f"LabSpec: {node.name}: shutdownGracePeriodByPodPriority excludes shutdownGracePeriod")
    if node.systemd < 251:  # before it, a root's shutdown bypasses logind (facts 1.7)
        raise SpecError(f"LabSpec: {node.name}: systemd {node.systemd} is not simulated, only 251 and later")
    if node.swap and not _is_quantity(node.swap):
        raise SpecError(f"LabSpec: {node.name}: swap {node.swap!r} is not a quantity")
    if node.swap and node.fail_swap_on and not node.swapped_off:
        raise SpecError(f"LabSpec: {node.name}: the kubelet cannot start: swap is on and failSwapOn is set")
    if node.os == "windows" and (node.role == "control-plane" or node.static_pods or node.swap):
        raise SpecError(f"LabSpec: {node.name}: Windows runs no control plane, and here no static pods and no swap")
    if node.preshutdown_timeout:
        parse_duration(node.preshutdown_timeout)
    if node.boot_seconds < 0:
        raise SpecError(f"LabSpec: {node.name}: bootSeconds is negative")


def _is_quantity(text: str) -> bool:
    try:
        return parse_quantity(text) >= 0
    except ValueError:
        return False


def parse_duration(duration: str) -> float:
    """Parse a Go duration such as ``30s``, ``1m30s`` or ``0``; in seconds. Raises SpecError."""
    if duration == "0":
        return 0.0
    parts = _DURATION.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise SpecError(f"not a duration: {duration!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
