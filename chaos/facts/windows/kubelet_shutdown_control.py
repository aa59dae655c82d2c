"""Notice that the kubelet's service gets of a shutdown."""

from __future__ import annotations

import re

from chaos.facts.windows._services import KUBELET, UNKNOWN_SERVICE, query_service
from chaos.model.fact import HostFact

_FLAGS = re.compile(r"\([A-Z_]+(?:, ?[A-Z_]+)*\)")
_NOTICES = {"ACCEPTS_PRESHUTDOWN": "preshutdown", "ACCEPTS_SHUTDOWN": "shutdown"}


class KubeletShutdownControl(HostFact):
    """Text: ``preshutdown``, ``shutdown`` or ``none``: a service that runs accepts one of both, or neither."""

    name = "kubelet-shutdown-control"
    summary = "notice of a shutdown that the kubelet's service accepts while it runs"
    command = query_service(KUBELET)

    def parse(self, stdout: str, exit_code: int) -> str:
        if exit_code == UNKNOWN_SERVICE:
            raise ValueError(f"there is no service {KUBELET}")
        flags = _FLAGS.search(stdout)
        if exit_code or flags is None:
            raise ValueError("the service does not run")
        words = flags[0].strip("()").replace(" ", "").split(",")
        return next((notice for flag, notice in _NOTICES.items() if flag in words), "none")


FACT = KubeletShutdownControl()
