"""An expired client certificate of the kubelet: the node stops reporting, and its pods keep running."""

from __future__ import annotations

from typing import Any

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
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until, no_proof, readings_after, within_duration
from chaos.core.node_mark import ClientCertificate, FileMode, FileOwner, NodeName, Sha256
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import DurationParams, timer_seconds
from chaos.faults.actions._service import KubeletState, capture_kubelet_state, inhibitor_checks
from chaos.faults.readings.certificates import EXPIRED_FILE

_FACT, _USER = "kubelet-client-certificate", "system:node:"
_TIMEOUT = 100.0  # seconds: a unit that notifies is started when the kubelet is ready
_RENEWAL_MARGIN = 3600.0  # seconds: undo may come late
# Kubelets that run once it is mounted may have read the former one: their process IDs go into a file for the proof.
# A separate key, so that the kubelet's is not read. req and genpkey give no certificate that has expired already.
_EXPIRE_SCRIPT = (
    "umask 077 && command -v pgrep > /dev/null"
    ' && openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"'
    ' && openssl req -x509 -new -key "$1" -subj "$2" -out "$1.crt"'
    ' && openssl x509 -in "$1.crt" -signkey "$1" -days 0 >> "$1" && mount --bind "$1" "$3"'
    ' && pgrep -x kubelet >> "$1.pid" && systemctl restart --no-block "$4"'
)
# A file that a program has open is busy: then it is only detached. The file of the fault is the last to go: what still
# has it, an interrupted undo, is undone again.
_RESTORE_SCRIPT = (
    'umount "$2" || umount --lazy "$2"; systemctl restart "$3" && rm --force "$1.crt" "$1.pid" && rm --force "$1"'
)


class CertificateState(KubeletState, frozen=True):
    """The node named in the certificate, and its file: the symbolic link's target, mode, owner, and content digest."""

    node: NodeName
    target: ClientCertificate
    mode: FileMode
    owner: FileOwner
    sha256: Sha256


def _former(state: CertificateState) -> FactCheck:
    value = {"target": state.target, "mode": state.mode, "owner": state.owner, "sha256": state.sha256}
    return FactCheck(_FACT, value | {"expired": False, "mounted": False, "prepared": False})


def _is_expired(value: Any) -> bool:
    return isinstance(value, dict) and value.get("expired") is True and value.get("mounted") is True


def _check_expired(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the expired certificate in force, and by the end of the kubelet that had read the valid one."""
    step = within_duration(step)
    in_force = holds_until(_FACT, _is_expired, "the kubelet's client certificate has expired").check(timeline, step)
    if in_force.status is not ProofStatus.PROVEN:
        return in_force
    for reading in readings_after(timeline, step, _FACT):
        if _is_expired(reading.value) and reading.value.get("former-process") is False:
            because = f"{in_force.because}, and the process that had read the former one has ended"
            return ProofResult(ProofStatus.PROVEN, because, (*in_force.evidence, reading.seq))
    return no_proof(f"the kubelet of {step.node} was not seen to end, and knows its former certificate")


def _require_unchanged(node: str, found: dict[str, Any]) -> None:
    """Raises Unsupported if this fault is already in force, or if the certificate has already expired."""
    if found["mounted"] or found["prepared"]:
        raise Unsupported(
            f"{node}: another file is mounted over the kubelet's client certificate, or prepared for that",
            hint="find the run with `nodefall undo --list` and undo it",
        )
    if found["expired"]:
        raise Unsupported(f"{node}: the kubelet's client certificate has expired", hint="renew it")


def _require_no_renewal(target: Target, credentials: dict[str, Any]) -> None:
    """Raises Unsupported if the kubelet authenticates in another way, or could get a new certificate."""
    if not credentials["rotated-file"]:
        raise Unsupported(
            f"{target.node}: the kubelet's kubeconfig does not name kubelet-client-current.pem as certificate and key",
            hint="choose a node of a cluster with kubeadm's layout",
        )
    if credentials["bootstrap"]:
        raise Unsupported(
            f"{target.node}: the kubelet would ask for another certificate with {credentials['bootstrap']}",
            hint="remove the bootstrap kubeconfig, which a node that has joined does not need",
        )
    if credentials["renewal-in"] < target.max_duration + _RENEWAL_MARGIN:
        raise Unsupported(
            f"{target.node}: 70 % of the validity of the kubelet's certificate are over or will be during the run, "
            "after which it may be renewed at any time, and undo could not restore it",
            hint="wait until the kubelet has renewed it, or choose another node",
        )


def _prepare(target: Target, params: DurationParams) -> CertificateState:
    kubelet = capture_kubelet_state(target, "the step restarts the kubelet's unit")
    found = target.require_fact(_FACT, "undo restores it")
    credentials = target.require_fact("kubelet-credentials", "the kubelet must not renew its certificate")
    _require_unchanged(target.node, found)
    _require_no_renewal(target, credentials)
    return CertificateState(
        kubelet.unit,
        kubelet.tag,
        timer_seconds(target, params.duration),
        kubelet.had_inhibitor,
        credentials["user"].removeprefix(_USER),
        *(found[key] for key in ("target", "mode", "owner", "sha256")),
    )


def _program(state: CertificateState) -> Program:
    """Undo: the kubelet's own certificate, and a kubelet that has started with it."""
    subject = f"/O=system:nodes/CN={_USER}{state.node}"
    expire = ("sh", "-c", _EXPIRE_SCRIPT, "nodefall", EXPIRED_FILE, subject, state.target, state.unit)
    restore = ("sh", "-c", _RESTORE_SCRIPT, "nodefall", EXPIRED_FILE, state.target, state.unit)
    former = _former(state)
    step = UndoStep(HostCommand(restore, timeout=_TIMEOUT), unless=former)
    return Program(
        (HostCommand(expire),),
        Undo((step,), (former, *inhibitor_checks(state), NODE_READY)),
        preconditions=(former,),
        failsafe=failsafe_timer(state, *restore),
    )


ACTION = Action(
    name="certificate-expired",
    summary="let the kubelet start with a client certificate that has expired",
    description="""
    The kubelet starts with an expired client certificate, which ``mount --bind`` puts over its own. Without a
    bootstrap kubeconfig, a kubelet that finds its certificate expired exits, and systemd starts it again and again
    ("unable to load bootstrap kubeconfig", cmd/kubelet/app and pkg/kubelet/certificate/bootstrap); without
    ``--bootstrap-kubeconfig`` it runs, and the API server answers 401. nodefall creates the certificate on the host,
    with a separate key. It neither moves nor reads the kubelet's file, and a boot restores the file. The action is
    refused on k3s and RKE2, which keep their certificates elsewhere.
    """,
    example="{name: expired, action: certificate-expired, target: victim}",
    params=DurationParams,
    state=CertificateState,
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,
    proofs=(Proof("expired", _check_expired),),
    needs=Needs(("kubelet-credentials", _FACT), (_FACT,)),
    prepare=_prepare,
    program=_program,
)
