"""Is a volume attached to a node?"""

from __future__ import annotations

from pydantic import Field

from chaos.judge.signals import Observation, from_history, mask_before
from chaos.model.assertion import Undecidable, View
from chaos.model.experiment import Model
from chaos.model.kube import AttachmentSpec, VolumeAttachment
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import History, Version


class Params(Model):
    """Which volumes; ``attached: false`` asks that those attached when judging starts are not any more."""

    node: str | None = Field(None, description="a target, a node's name, or all")
    volume: str | None = Field(None, description="name of the PersistentVolume")
    claim: str | None = Field(None, description="NAMESPACE/NAME of the claim; NAMESPACE may be workload")
    attached: bool = True


def _state(version: Version[VolumeAttachment]) -> tuple[bool, str]:
    """Whether it is attached, in words."""
    if version.is_deleted:
        return False, "its VolumeAttachment is gone"
    status = version.object.status
    for what, error in (("attach", status and status.attach_error), ("detach", status and status.detach_error)):
        if error:
            return bool(status and status.attached), f"it could not {what}: {error.message or 'no message'}"
    attached = bool(status and status.attached)
    return attached, "it is attached" if attached else "its VolumeAttachment says that it is not attached"


def _volume_of(spec: AttachmentSpec | None) -> str:
    return (spec.source.persistent_volume_name if spec and spec.source else None) or ""


class VolumeAttached:
    """A VolumeAttachment of the volume to the node says attached; detached is when that object is gone or says not.

    ``attached: true``: some attachment that fits is there. ``attached: false``: each one that was there when judging
    starts is attached no more. The attachment's object stays until the driver has detached.
    """

    name = "volume-attached"
    summary = "volumes are attached to a node, or are not any more"
    example = "{assert: volume-attached, with: {node: victim, attached: false}, after: out-of-service, within: 40s}"
    needs = "the VolumeAttachments, watched without a gap from when one was there"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        if not timeline.volumeattachments:
            raise Undecidable("no VolumeAttachment was seen anywhere")
        first = min(history.times[0] for history in timeline.volumeattachments.values())
        which = {
            name: history for name, history in timeline.volumeattachments.items() if _matches(history, params, view)
        }
        subjects = []
        for name, history in which.items():
            then = history.at(view.anchor)
            if not params.attached and (then is None or not _state(then)[0]):
                continue
            before = Sample(float("-inf"), not params.attached, None, "it has no VolumeAttachment yet")
            told = from_history(history, lambda version: _evaluate(version, params.attached))
            spec = history.last.object.spec
            label = f"{_volume_of(spec) or name} on {spec.node_name if spec else '?'}"
            signal = mask_before(first, Signal((before, *told.samples)), timeline, "volumeattachments")
            subjects.append(Subject(label, signal))
        where = f" to {params.node}" if params.node else ""
        if params.attached:
            nothing = Signal((Sample(float("-inf"), False, None, "no VolumeAttachment like it was seen"),))
            subjects.append(Subject("", mask_before(first, nothing, timeline, "volumeattachments")))
            return SubjectSet(f"a volume is attached{where}", tuple(subjects), Quantifier.ANY)
        empty = f"no volume was attached{where} at the beginning"
        return SubjectSet(f"no volume is attached{where} any more", tuple(subjects), empty_reason=empty)


def _evaluate(version: Version[VolumeAttachment], wanted: bool) -> Observation:
    attached, seen = _state(version)
    return attached is wanted, seen


def _matches(history: History[VolumeAttachment], params: Params, view: View) -> bool:
    spec = history.last.object.spec or AttachmentSpec()
    nodes = None if params.node is None else view.nodes(params.node)
    volume = params.volume if params.claim is None else _volume_of_claim(params.claim, view)
    return (nodes is None or spec.node_name in nodes) and volume in (None, _volume_of(spec))


def _volume_of_claim(claim: str, view: View) -> str:
    """The volume that a claim is bound to. Raises Undecidable."""
    namespace, _, name = claim.rpartition("/")
    history = view.timeline.persistentvolumeclaims.get((view.namespace(namespace or "workload"), name))
    names = [v.object.spec.volume_name for v in history or () if v.object.spec and v.object.spec.volume_name]
    if not names:
        raise Undecidable(f"it was not seen which volume the claim {claim} is bound to", f"the claim {claim}, bound")
    return names[-1]


ASSERTION = VolumeAttached()
