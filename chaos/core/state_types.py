"""Types of the fields of state records, for names that reach a command.

A state may come from a ConfigMap that anybody has written: a value is validated when the record is decoded, so that an
undo names no option, no path and no other object than its action meant.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from chaos.core.field_types import (
    BLOCK_DEVICE,
    CRASH_TOOL,
    DISK_UNIT,
    DNS_NAME,
    MOUNT_OPTIONS,
    MOUNT_POINT,
    NODE_UNIT,
)

# Units that no undo starts: of those of systemd only what actions stop, as others take the machine down.
_MACHINE_UNITS = "systemd-(?!logind|timesyncd)[^.@]*|emergency|rescue|debug-shell"
_DNS_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"

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
StepName = Annotated[str, Meta(pattern=rf"\A{_DNS_LABEL}\Z")]
NodeName = Annotated[str, Meta(pattern=r"\A[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")]
NamespaceName = Annotated[str, Meta(pattern=rf"\A{_DNS_LABEL}\Z")]
TaintName = Annotated[  # KEY:EFFECT
    str,
    Meta(
        pattern=r"\A(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
        r":(?:NoSchedule|PreferNoSchedule|NoExecute)\Z"
    ),
]
_OBJECT = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
WorkloadPath = Annotated[
    str,
    Meta(pattern=rf"\A/apis/apps/v1/namespaces/{_DNS_LABEL}/(?:deployments|statefulsets|daemonsets)/{_OBJECT}\Z"),
]
BudgetPath = Annotated[
    str, Meta(pattern=rf"\A/apis/policy/v1/namespaces/{_DNS_LABEL}/poddisruptionbudgets/{_OBJECT}\Z")
]
