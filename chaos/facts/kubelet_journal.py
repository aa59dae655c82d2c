"""Log lines of the kubelet's shutdown manager, from the journal.

At ``--v=0``, kubeadm's default, there are next to none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import SECONDS_SINCE_READ, HostFact

# The name of the source file is in every line of klog, as text and as JSON. Errors are sent to stdout for the parser:
# exit code 1 alone only means that no line matched.
_SCRIPT = (
    'exec journalctl -q -u "$1" -o json --output-fields=MESSAGE --since="-$2s" --grep=nodeshutdown_manager'
    " --no-pager 2>&1"
)


class KubeletJournal(HostFact):
    """Mapping ``{"lines": [{t, message}]}`` of the last ``unread-seconds``; ``t`` is by the host's clock."""

    name = "kubelet-journal"
    summary = "log lines of the kubelet's shutdown manager"
    needs = ("kubelet-unit", SECONDS_SINCE_READ)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(
            ("sh", "-c", _SCRIPT, "sh", str(known["kubelet-unit"]), str(known[SECONDS_SINCE_READ])), timeout=5.0
        )

    def parse(self, stdout: str, exit_code: int) -> dict[str, Any]:
        if exit_code not in (0, 1):
            raise ValueError(f"journalctl failed: {stdout.strip()[:200]}")
        try:
            return {"lines": [_line(json.loads(text)) for text in stdout.splitlines() if text.strip()]}
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"journalctl is not understood: {stdout.strip()[:200]}") from error


def _line(entry: dict[str, Any]) -> dict[str, Any]:
    """Entry of the fact, see systemd.journal-fields(7); a message that is not UTF-8 is a list of bytes."""
    message = entry["MESSAGE"]
    text = bytes(message).decode("utf-8", "replace") if isinstance(message, list) else str(message)
    return {"t": int(entry["__REALTIME_TIMESTAMP"]) / 1e6, "message": text}


FACT = KubeletJournal()
