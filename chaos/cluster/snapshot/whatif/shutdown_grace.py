"""``shutdownGracePeriod=DURATION`` and ``shutdownGracePeriodCriticalPods=DURATION``: of all kubelets."""

from __future__ import annotations

from functools import partial

from chaos.cluster.snapshot.contents import Contents, name_of
from chaos.cluster.snapshot.whatif.change import Apply, ChangeKind, seconds_of

_BY_PRIORITY = "shutdownGracePeriodByPodPriority"
_NAMES = ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")


def _parse(name: str, text: str) -> Apply:
    seconds = seconds_of(text)

    def apply(contents: Contents) -> str:
        for node in contents.of("nodes"):
            config = contents.configs.setdefault(name_of(node), {})
            config.pop(_BY_PRIORITY, None)  # excludes the two others
            config[name] = f"{seconds:g}s"
        return f"every kubelet has {name} {seconds:g}s"

    return apply


KINDS = tuple(
    ChangeKind(name, "DURATION", f"{name} of all kubelets, without a list by priority", partial(_parse, name))
    for name in _NAMES
)
