"""Assertion ``volume-attached``: volumes are, or are no longer, attached to a node."""

from __future__ import annotations

from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View
from chaos.core.field_types import Flag, Model
from chaos.core.kube import AttachmentSpec, VolumeAttachment
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.membership import membership
from chaos.verdicts.judge.signals import Observation, from_history, mask_unwatched, watched_since


class Params(Model):
    """Volumes; ``attached: false`` means that volumes attached when judging starts are detached."""

    node: str | None = Field(None, description="A target, or all.")
    volume: str | None = Field(None, description="The name of the PersistentVolume.")
    claim: str | None = Field(None, description="The claim as NAMESPACE/NAME. NAMESPACE may be workload.")
    attached: Flag = True


def _state(version: Version[VolumeAttachment]) -> tuple[bool, str]:
    """Whether the volume is attached, with a description."""
    if version.is_deleted:
        return False, "its VolumeAttachment was deleted"
    status = version.object.status
    for operation, error in (("attach", status and status.attach_error), ("detach", status and status.detach_error)):
        if error:
            return bool(status and status.attached), f"{operation} failed: {error.message or 'no message'}"
    attached = bool(status and status.attached)
    return attached, "attached" if attached else "not attached, according to its VolumeAttachment"


def _volume_of(spec: AttachmentSpec | None) -> str:
    return (spec.source.persistent_volume_name if spec and spec.source else None) or ""


class VolumeAttached:
    """The status.attached of a VolumeAttachment is true. A volume is detached if that is false or if the object was
    deleted.

    With ``attached: true``, at least one matching volume is attached. With ``attached: false``, each matching volume
    that was attached when judging started is detached. The object exists until the driver has detached the volume.
    """

    name = "volume-attached"
    summary = "volumes are attached to a node, or are detached"
    example = "{assert: volume-attached, with: {node: victim, attached: false}, after: out-of-service, within: 40s}"
    needs = "the VolumeAttachments, watched without a gap since the first one"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    masks_itself = True
    sources = ("volumeattachments", "persistentvolumeclaims")

    def claim(self, params: Params, names: Names) -> Claim:
        name = f"volume {params.volume}" if params.volume else ""
        name = f"the volume of claim {params.claim.rpartition('/')[2]}" if params.claim else name
        where = names.on(params.node).replace(" on ", " to ", 1)
        if params.attached:
            if name:
                return Noun(name).is_(f"attached{where}")
            return Claim(f"a volume was attached{where}", f"no volume was attached{where}")
        where = where.replace(" to ", " from ", 1)
        volumes = Noun(name) if name else Noun("volumes", is_plural=True)
        return volumes.is_(f"detached{where}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        watched_since(timeline, "volumeattachments")
        subjects = []
        for name, history in timeline.volumeattachments.items():
            if not _matches(history, params, view):
                continue
            then = None if params.attached else membership(history, view.anchor, lambda version: _state(version)[0])
            if then is False:
                continue
            before = Sample(float("-inf"), not params.attached, None, "no VolumeAttachment yet")
            observed = from_history(history, lambda version: _evaluate(version, params.attached))
            spec = history.last.object.spec
            label = f"{_volume_of(spec) or name} on {spec.node_name if spec else '?'}"
            signal = mask_unwatched(Signal((before, *observed.samples)), timeline, "volumeattachments")
            subjects.append(Subject(label, signal, is_certain=params.attached or then is True))
        where = f" to {params.node}" if params.node else ""
        if params.attached:
            none = Signal((Sample(float("-inf"), False, None, "no matching VolumeAttachment was observed"),))
            subjects.append(Subject("", mask_unwatched(none, timeline, "volumeattachments")))
            return SubjectSet(f"a volume is attached{where}", tuple(subjects), Quantifier.ANY)
        empty = f"no volume was attached{where} at the beginning"
        return SubjectSet(f"no volume is attached{where} any longer", tuple(subjects), empty_reason=empty)


def _evaluate(version: Version[VolumeAttachment], expected: bool) -> Observation:
    attached, text = _state(version)
    return attached is expected, text


def _matches(history: History[VolumeAttachment], params: Params, view: View) -> bool:
    spec = history.last.object.spec or AttachmentSpec()
    nodes = None if params.node is None else view.nodes(params.node)
    volume = params.volume if params.claim is None else _volume_of_claim(params.claim, view)
    return (nodes is None or spec.node_name in nodes) and volume in (None, _volume_of(spec))


def _volume_of_claim(claim: str, view: View) -> str:
    """Volume that a claim is bound to. Raises Undecidable."""
    namespace, _, name = claim.rpartition("/")
    history = view.timeline.persistentvolumeclaims.get((view.namespace(namespace or "workload"), name))
    names = [v.object.spec.volume_name for v in history or () if v.object.spec and v.object.spec.volume_name]
    if not names:
        raise Undecidable(f"the volume of claim {claim} was not observed", f"the claim {claim}, bound")
    return names[-1]


ASSERTION = VolumeAttached()
