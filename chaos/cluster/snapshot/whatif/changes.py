"""All keys of ``--what-if``, and how their values change a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from chaos.cluster.snapshot.document import Contents
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind
from chaos.cluster.snapshot.whatif.of_clusters import FLAGS, KUBERNETES, NODES, SHUTDOWN_GRACE, SYSTEMD, WITHOUT
from chaos.cluster.snapshot.whatif.of_workloads import GRACE, REPLICAS, TOLERATION_SECONDS

_KINDS = (GRACE, TOLERATION_SECONDS, REPLICAS, NODES, WITHOUT, SYSTEMD, KUBERNETES, *SHUTDOWN_GRACE, *FLAGS)
CHANGES: dict[str, ChangeKind] = {kind.key: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Change:
    """``text``: KEY=VALUE."""

    text: str
    apply: Apply


def parse_change(text: str) -> Change:
    """Parse ``KEY=VALUE``. Raises ChangeError."""
    key, sign, value = text.partition("=")
    if key not in CHANGES or not sign:
        near = get_close_matches(key, CHANGES, 1, 0.5)
        hint = f"did you mean {near[0]}={CHANGES[near[0]].syntax}?" if near else f"the keys are {', '.join(CHANGES)}"
        raise ChangeError(f"unknown change {text!r}", hint)
    return Change(text, CHANGES[key].parse(value))


def apply_changes(contents: Contents, changes: Sequence[Change]) -> list[str]:
    """Change a snapshot in place, in this order; one sentence for each change. Raises ChangeError."""
    sentences = []
    for change in changes:
        try:
            sentences.append(change.apply(contents))
        except ChangeError as error:
            raise ChangeError(f"{change.text}: {error}", error.hint) from error
    return sentences
