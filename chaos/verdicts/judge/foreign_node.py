"""Foreign faults in the versions of a Node object: cordons, taints, deletions, shutdowns, silence, upgrades."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from chaos.core.kube import Node, NodeInfo, node_condition
from chaos.core.labels import CONTROL_PLANE_LABELS, FIELD_MANAGER
from chaos.core.result import ForeignFault
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.foreign_effect import (
    Case,
    ForeignKind,
    component,
    describe_manager,
    event_author,
    fault,
    field_owner,
)
from chaos.verdicts.judge.membership import Revisions
from chaos.verdicts.judge.own_changes import NodeChange

# Kubernetes itself adds and removes these taints. People set out-of-service.
_LIFECYCLE = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_CLOUD_LIFECYCLE, _DELETING_NODE = "cloud-node-lifecycle-controller", "DeletingNode"
_SILENT_SECONDS = 20.0  # without renewal of the Lease, twice its period: so the kubelet is gone
_SOFTWARE = (("kubelet", "kubelet_version"), ("operating system", "os_image"), ("kernel", "kernel_version"))
NodeVersion = Version[Node]
Change = tuple[NodeVersion, NodeVersion]


class StateChanges:
    """The :func:`state_changes` of all nodes that have any. They are computed again only for nodes with a new
    version.
    """

    def __init__(self) -> None:
        self._revisions = Revisions()
        self._found: dict[str, list[Change]] = {}

    def update(self, nodes: Mapping[str, History[Node]]) -> Mapping[str, list[Change]]:
        """Those of ``nodes``, by name; ``nodes``: those of the call before, and new ones after."""
        changed = self._revisions.changed(nodes.values())
        names = list(nodes) if changed else []
        for index in changed:
            name = names[index]
            if found := state_changes(nodes[name]):
                self._found[name] = found
            else:
                self._found.pop(name, None)
        self._revisions.note()
        return self._found


def state_changes(history: History[Node]) -> list[Change]:
    """The versions, each with the one before, that differ in more than a heartbeat."""
    return [(before, after) for before, after in pairwise(history) if _state(before) != _state(after)]


def _state(version: NodeVersion) -> tuple[object, ...]:
    """The state of a node in which a fault may show."""
    node = version.object
    ready = node_condition(node, "Ready")
    health = (ready.status, ready.message) if ready else None
    return version.is_deleted, node.metadata.uid, node.spec, _info(node), health


def node_faults(case: Case, name: str, changes: Iterable[Change]) -> Iterator[ForeignFault]:
    """All of one node, by its :func:`state_changes`, in order of time."""
    reactions: set[str] = set()  # taints that a controller set in reaction to a fault of the run
    for before, after in changes:
        if before.is_deleted or case.own.explains_everything(name, after.t):
            continue
        if after.is_deleted or before.object.metadata.uid != after.object.metadata.uid:
            yield from _deletion(case, name, before, after)
            continue
        yield from _cordon(case, name, before, after)
        yield from _taints(case, name, before, after, reactions)
        yield from _software(name, before, after)
        yield from _shutdown(case, name, before, after)
        yield from _silence(case, name, before, after)


def _is_own(case: Case, name: str, owner: str, since: float, t: float) -> bool:
    """Whether the run changed the spec. A field that was removed has no owner: then the time decides."""
    if owner and case.own.is_recorded_by_us:
        return owner == FIELD_MANAGER
    return case.own.overlaps(name, NodeChange.SPEC, since, t)


def _cordon(case: Case, name: str, before: NodeVersion, after: NodeVersion) -> Iterator[ForeignFault]:
    was, is_ = (bool(v.object.spec and v.object.spec.unschedulable) for v in (before, after))
    if was == is_:
        return
    since = case.earliest("nodes", before, after)
    owner = field_owner(after.object, "unschedulable") if is_ else ""
    if _is_own(case, name, owner, since, after.t):
        return
    kind, what = (ForeignKind.CORDON, "was cordoned") if is_ else (ForeignKind.UNCORDON, "was uncordoned")
    by = describe_manager(owner) or event_author(case.timeline, "Node", name, after.t)
    yield fault(name, kind, what, by, after.t, since, before.seq, after.seq)


def _taints(
    case: Case, name: str, before: NodeVersion, after: NodeVersion, reactions: set[str]
) -> Iterator[ForeignFault]:
    was, is_ = _foreign_taints(before.object), _foreign_taints(after.object)
    added = [key for key, value in is_.items() if was.get(key) != value]
    removed = [key for key in was if key not in is_ and key not in reactions]
    if not added and not removed:
        return
    since = case.earliest("nodes", before, after)
    owner = field_owner(after.object, "taints")
    if _is_own(case, name, owner, since, after.t):
        return
    is_tool = bool(owner) and owner != FIELD_MANAGER and not owner.startswith("kubectl")
    if is_tool and case.own.began(name, NodeChange.REPORTING, after.t):
        reactions.update(added)
        return
    by = describe_manager(owner) or event_author(case.timeline, "Node", name, after.t)
    for kind, verb, keys in ((ForeignKind.TAINT, "tainted", added), (ForeignKind.UNTAINT, "untainted", removed)):
        for key in keys:
            yield fault(name, kind, f"was {verb} {key}", by, after.t, since, before.seq, after.seq)


def _foreign_taints(node: Node) -> dict[str, str]:
    """Values of the taints that Kubernetes does not manage, by ``KEY:EFFECT``."""
    taints = (node.spec.taints if node.spec else None) or ()
    return {
        f"{t.key}:{t.effect}": t.value or ""
        for t in taints
        if not t.key.startswith(_LIFECYCLE) or t.key == _OUT_OF_SERVICE
    }


def _deletion(case: Case, name: str, before: NodeVersion, after: NodeVersion) -> Iterator[ForeignFault]:
    if case.own.began(name, NodeChange.OBJECT, after.t) or _is_reaction_of_cloud(case, name, after.t):
        return
    since = case.earliest("nodes", before, after)
    by = event_author(case.timeline, "Node", name, after.t)
    yield fault(name, ForeignKind.DELETION, "was deleted", by, after.t, since, before.seq, after.seq)


def _is_reaction_of_cloud(case: Case, name: str, t: float) -> bool:
    """Whether the cloud's controller deleted the Node of a machine that the run itself has made silent."""
    return case.own.began(name, NodeChange.REPORTING, t) and any(
        (component(event), event.reason) == (_CLOUD_LIFECYCLE, _DELETING_NODE)
        for _, event in case.timeline.events.about(name)
    )


def _software(name: str, before: NodeVersion, after: NodeVersion) -> Iterator[ForeignFault]:
    old, new = _info(before.object), _info(after.object)
    changes = [
        f"{what} {getattr(old, field)} to {getattr(new, field)}"
        for what, field in _SOFTWARE
        if getattr(old, field) and getattr(new, field) and getattr(old, field) != getattr(new, field)
    ]
    if changes:
        what = f"was upgraded ({', '.join(changes)})"
        yield fault(name, ForeignKind.UPGRADE, what, "", after.t, before.t, before.seq, after.seq)


def _info(node: Node) -> NodeInfo:
    return (node.status.node_info if node.status else None) or NodeInfo()


def _shutdown(case: Case, name: str, before: NodeVersion, after: NodeVersion) -> Iterator[ForeignFault]:
    if not _is_shutting_down(after.object) or _is_shutting_down(before.object):
        return
    own = (NodeChange.SHUTDOWN, NodeChange.BOOT)
    if not any(case.own.began(name, change, after.t) for change in own):
        since = case.earliest("nodes", before, after)
        yield fault(name, ForeignKind.SHUTDOWN, "is being shut down", "", after.t, since, before.seq, after.seq)


def _is_shutting_down(node: Node) -> bool:
    ready = node_condition(node, "Ready")
    return ready is not None and "node is shutting down" in (ready.message or "")


def _silence(case: Case, name: str, before: NodeVersion, after: NodeVersion) -> Iterator[ForeignFault]:
    """The fault of a silent kubelet. A node that is not Ready but renews its Lease is not a foreign fault."""
    if not _is_unknown(after.object) or _is_unknown(before.object):
        return
    own = (NodeChange.REPORTING, NodeChange.OBJECT)
    if any(case.own.began(name, change, after.t) for change in own) or _is_control_plane_hit(case, after.t):
        return
    renewed = _last_renewal(case, name, after.t)
    if renewed is not None and after.t - renewed >= _SILENT_SECONDS:
        what = "no longer reports"
        yield fault(name, ForeignKind.SILENCE, what, "", after.t, renewed, before.seq, after.seq)


def _is_unknown(node: Node) -> bool:
    ready = node_condition(node, "Ready")
    return ready is not None and ready.status == "Unknown"


def _last_renewal(case: Case, name: str, t: float) -> float | None:
    """When the node's Lease was last seen renewed; None if Leases were not observed, or not in time."""
    history = case.timeline.leases.get(name)
    last = history.at(t) if history else None
    if last is None:
        return None
    hiding = (
        w for w in case.timeline.uncertain_windows("leases") if w.start <= t and (w.end is None or w.end > last.t)
    )
    return None if any(hiding) else last.t


def _is_control_plane_hit(case: Case, t: float) -> bool:
    """Whether the run has changed a machine of the control plane, which may make other nodes silent."""
    for node in case.own.nodes:
        history = case.timeline.nodes.get(node)
        labels = (history.first.object.metadata.labels or {}) if history else {}
        if any(label in labels for label in CONTROL_PLANE_LABELS) and case.own.began(node, NodeChange.REPORTING, t):
            return True
    return False
