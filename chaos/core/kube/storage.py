"""PersistentVolumeClaims and VolumeAttachments."""

from __future__ import annotations

from msgspec import field

from chaos.core.kube.meta import Base, Metadata


class AttachmentSource(Base):
    persistent_volume_name: str | None = None


class AttachmentSpec(Base):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource | None = None


class VolumeError(Base):
    time: str | None = None
    message: str | None = None


class AttachmentStatus(Base):
    attached: bool | None = None
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: AttachmentSpec | None = None
    status: AttachmentStatus | None = None


class ClaimSpec(Base):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class ClaimStatus(Base):
    phase: str | None = None


class PersistentVolumeClaim(Base):
    """The claim between a pod's volume (``claimName``) and the attached volume (``volumeName``)."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None
