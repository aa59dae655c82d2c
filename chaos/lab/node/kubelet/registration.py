"""How long a Node that its kubelet has just created is not Ready, and what it says until then.

It is Ready once its kubelet has checked the container runtime and created the CSINode, for which it waits until the
Node is there, in retries 15 ms to 3 s apart (pkg/volume/csi/csi_plugin.go, initializeCSINode).
"""

from __future__ import annotations

from typing import NamedTuple

RUNTIME_UNCHECKED = "container runtime status check may not have completed yet"
_NO_CSI_NODE = "CSINode is not yet initialized"
MESSAGES = (RUNTIME_UNCHECKED, _NO_CSI_NODE, f"[{RUNTIME_UNCHECKED}, {_NO_CSI_NODE}]")  # in the order of ReadyCondition


class Registration(NamedTuple):
    """A message of :data:`MESSAGES`, and for how many seconds the Node has it."""

    message: str
    seconds: float
