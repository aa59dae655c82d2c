"""The undo that removes the helper pods of a run, also after the death of the process that made them."""

from __future__ import annotations

import re
from urllib.parse import quote

from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.api_fact import object_fact
from chaos.core.command import KubeCommand
from chaos.core.labels import HELPER_LABEL, RUN_LABEL
from chaos.machines.pod.helpers import pods_path

HELPER_PODS = "helper-pods"  # action name of the journal entry; its node is the namespace
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def removal(namespace: str, run: str) -> Undo:
    """Delete the pods of ``run`` in ``namespace``, proven when there are none. Raises ValueError for no namespace.

    Also those of processes that undo it, which need none after this.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"{namespace!r} is no namespace")
    ours = f"{pods_path(namespace)}?labelSelector={quote(f'{HELPER_LABEL}=pod,{RUN_LABEL}={run}')}"
    none = FactCheck(object_fact(ours, "/items/0/metadata/name"), None)
    return Undo((UndoStep(KubeCommand("DELETE", ours), unless=none),), (none,))
