"""An etcd member that is killed while it is the leader, and does not come back for a while."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct
from pydantic import Field, field_validator

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until, last_reading_before, no_proof, readings_after, within_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.node_mark import NodeName, Sha256, Tag
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import timer_seconds
from chaos.faults.readings.containers import CLIENT_PATHS, SOCKETS
from chaos.faults.readings.etcd import CONTAINER, CRICTL, MANIFEST, NAMESPACE

_MANIFEST_FACT, _MEMBERS, _HEALTH, _CONTAINERS = "etcd-manifest", "etcd-members", "etcd-health", "containers"
_SHORTEST = 60.0  # seconds: the kubelet lets go of the pod within 20 s, and takes as long to start it again
_TIMEOUT = 60.0
_SHOW = ("umount", "--lazy", MANIFEST)  # immediately, though a program has it open, as one that compares files
_OF_POD = f'--label io.kubernetes.pod.namespace={NAMESPACE} --label "io.kubernetes.pod.name={CONTAINER}-$4"'
# SIGKILL, as a leader that gets SIGTERM hands over. The kubelet starts the container again until it lists the manifests
# (fileCheckFrequency, 20 s), so it is killed again. The loop ends with the mount at the latest.
_KILL_SCRIPT = (
    'mount --bind /dev/null "$3" && '
    f'while test -c "$3" && pod=$({CRICTL} pods --quiet --state Ready {_OF_POD}) && '
    'test -n "$pod"; do '
    f"id=$({CRICTL} ps --quiet --state Running {_OF_POD}); "
    f'test -z "$id" || {CRICTL} stop --timeout 0 $id; sleep 0.2; done'
)


def _one_of(paths: Iterable[str]) -> str:
    return rf"\A(?:{'|'.join(map(re.escape, paths))})\Z"


_Client = Annotated[str, Meta(pattern=_one_of(path for path in CLIENT_PATHS if path.endswith("/crictl")))]
_Socket = Annotated[str, Meta(pattern=_one_of(SOCKETS))]


class Params(Model):
    """The duration of the fault."""

    duration: DurationText | None = Field(
        None,
        description="When the fault ends by itself, at least 1m. By default, and at the latest, at maxDuration.",
    )

    @field_validator("duration")
    @classmethod
    def _validate_duration(cls, value: str | None) -> str | None:
        if value and parse_duration(value) < _SHORTEST:
            raise ValueError("duration is at least 1m: the kubelet lets go of the pod within 20 s")
        return value


class LeaderState(Struct, frozen=True):
    """The node (and member), the digest of its manifest, voters, healthy voters, the runtime's client and socket."""

    node: NodeName
    sha256: Sha256
    voters: tuple[str, ...]
    healthy: tuple[str, ...]
    client: _Client
    socket: _Socket
    tag: Tag
    seconds: float


def _is_mounted(value: Any) -> bool:
    return isinstance(value, dict) and value.get("mounted") is True


def _is_leader(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("leader")) and value.get("leader") == value.get("member")


def _etcd_ids(value: Any) -> set[str] | None:
    """The IDs of etcd's running containers; None if the reading is invalid."""
    if not isinstance(value, dict) or not isinstance(value.get("running"), list):
        return None
    return {
        str(item.get("id"))
        for item in value["running"]
        if item.get("namespace") == NAMESPACE and item.get("container") == CONTAINER
    }


def _check_ended(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the leader's container ran before the step, and no etcd container has run since it returned."""
    step = within_duration(step)
    hidden = holds_until(_MANIFEST_FACT, _is_mounted, "the kubelet does not see the manifest").check(timeline, step)
    if hidden.status is not ProofStatus.PROVEN:
        return hidden
    led, before = (last_reading_before(timeline, step, fact) for fact in (_MEMBERS, _CONTAINERS))
    if led is None or not _is_leader(led.value):
        return no_proof(f"{step.node} was not seen to be the leader of etcd before the step")
    if before is None or not _etcd_ids(before.value):
        return no_proof(f"etcd was not seen to run on {step.node} before the step")
    ended = _ended(timeline, step)
    evidence = (*hidden.evidence, led.seq, before.seq, *ended.evidence)
    because = f"{ended.because}, and {hidden.because}" if ended.status is ProofStatus.PROVEN else ended.because
    return ProofResult(ended.status, because, evidence)


def _ended(timeline: Timeline, step: StepRun) -> ProofResult:
    """Whether no container of etcd was seen since the step returned."""
    readings = readings_after(timeline, step, _CONTAINERS) if step.returned is not None else []
    later = [reading for reading in readings if reading.began >= (step.returned or step.begin)]
    known = [(reading, ids) for reading in later if (ids := _etcd_ids(reading.value)) is not None]
    if not known:
        return no_proof(f"the containers of {step.node} were not read after the step")
    if running := next((reading for reading, ids in known if ids), None):
        because = f"etcd ran on {step.node} {running.t - step.begin:.1f} s after the step"
        return ProofResult(ProofStatus.DISPROVEN, because, (running.seq,))
    because = f"etcd of {step.node}, the leader before, has ended"
    return ProofResult(ProofStatus.PROVEN, because, (known[0][0].seq,))


def _require_leader(node: str, members: dict[str, Any]) -> None:
    """Raises Unsupported if another member leads, or none does."""
    leader, member = members["leader"], members["member"]
    if member != node:
        raise Unsupported(f"{node}: its etcd member has another name, {member}", hint="name members after their nodes")
    if not leader:
        raise Unsupported(f"{node}: etcd has no leader now", hint="see `etcdctl endpoint status --cluster`")
    if leader != node:
        raise Unsupported(f"{node} is not the leader of etcd: {leader} is", hint=f"target {leader}")


def _require_majority(node: str, members: dict[str, Any]) -> None:
    """Raises Unsupported if too few voting members would be left."""
    count, left = len(members["voters"]), len(set(members["healthy"]) - {node})
    if left <= count // 2:
        raise Unsupported(
            f"{node}: without it only {left} of {count} voting members of etcd would be healthy, and it needs "
            f"{count // 2 + 1}: the cluster would reject all writes, including the undo",
            hint="choose a cluster with at least 3 members that are all healthy",
        )


def _prepare(target: Target, params: Params) -> LeaderState:
    manifest = target.require_fact(_MANIFEST_FACT, "the step hides the manifest of kubeadm's etcd")
    if manifest["mounted"]:
        raise Unsupported(
            f"{target.node}: something is mounted over {MANIFEST} already",
            hint="find the run with `nodefall undo --list` and undo it",
        )
    members = target.require_fact(_MEMBERS, "the member must be the leader, and a majority must remain")
    _require_leader(target.node, members)
    _require_majority(target.node, members)
    return LeaderState(
        node=target.node,
        sha256=manifest["sha256"],
        voters=tuple(members["voters"]),
        healthy=tuple(members["healthy"]),
        client=target.require_fact("runtime-client", "it kills the container"),
        socket=target.require_fact("runtime-socket", "it kills the container"),
        tag=target.tag,
        seconds=timer_seconds(target, params.duration),
    )


def _program(state: LeaderState) -> Program:
    former = FactCheck(_MANIFEST_FACT, {"sha256": state.sha256, "mounted": False})
    known = {"voters": list(state.voters), "healthy": list(state.healthy)}
    members = {"member": state.node, "leader": state.node, **known}
    kill = ("sh", "-c", _KILL_SCRIPT, "nodefall", state.client, state.socket, MANIFEST, state.node)
    return Program(
        (HostCommand(kill, timeout=_TIMEOUT),),
        Undo((UndoStep(HostCommand(_SHOW), unless=former),), (former, FactCheck(_HEALTH, True), NODE_READY)),
        preconditions=(former, FactCheck(_MEMBERS, members)),
        failsafe=failsafe_timer(state, *_SHOW),
    )


ACTION = Action(
    name="etcd-leader-kill",
    summary="kill the etcd member that is the leader, and keep it from starting for a while",
    description="""
    Kills kubeadm's etcd member on the node that is the leader, and keeps the kubelet from starting it again.

    /dev/null is mounted over the manifest of the static pod, which no kubelet takes for one
    (pkg/kubelet/config/file.go extractFromDir), and the container is killed until the kubelet, which lists manifests
    every 20 s, has let go of it. It uses SIGKILL, because a leader that is asked to stop hands over first (etcd,
    EtcdServer.Stop). The file is neither moved nor changed, and a boot ends the fault. Undo removes the mount, and
    the kubelet starts etcd within 20 s.

    The leader is known only when the run is planned, so name the node in the target. The action is refused on a node
    that is not the leader, and if the healthy voting members without it would not be a majority. It is also refused
    on k3s, RKE2 and with an external etcd, which have no such manifest, and without crictl. An API server of kubeadm
    uses only the etcd on its own node. Therefore the API server of the target fails, too, and so does the Node if its
    kubelet uses no other API server (ControlPlaneKubeletLocalMode). A load balancer sends its clients to other API
    servers only if it checks a path that fails without etcd, such as /livez (apiserver, addEtcdHealthEndpoint).
    Otherwise the Nodes of its clients become Unknown. The proof shows that the member has ended. Whether another
    member leads is a question for the experiment.
    """,
    example="{name: leader-lost, action: etcd-leader-kill, target: victim, with: {duration: 90s}}",
    params=Params,
    state=LeaderState,
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,  # pods are reached through an API server, which may be the one that has only this etcd
    proofs=(Proof("member-ended", _check_ended),),
    needs=Needs(
        (_MANIFEST_FACT, _MEMBERS, "runtime-client", "runtime-socket"), (_MANIFEST_FACT, _MEMBERS, _CONTAINERS)
    ),
    prepare=_prepare,
    program=_program,
)
