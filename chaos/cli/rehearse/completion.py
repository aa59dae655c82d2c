"""Shell completion of ``--what-if``: the keys, then what of the snapshot a value may begin with."""

# ruff: noqa: PLC0415 - slow imports are deferred until something is completed
from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from chaos.core.errors import NodefallError

_MAX = 200


def complete_change(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """``KEY=`` with its syntax; behind it, workloads or nodes of the snapshot."""
    from chaos.cluster.snapshot.whatif.changes import CHANGES

    key, sign, _ = incomplete.partition("=")
    if not sign:
        return [
            CompletionItem(f"{kind.key}=", help=f"{kind.syntax}: {kind.summary}")
            for kind in CHANGES.values()
            if kind.key.startswith(incomplete)
        ]
    snapshot = ctx.params.get("snapshot")
    if key not in CHANGES or not snapshot:
        return []
    colon = ":" if ":" in CHANGES[key].syntax else ""
    found = [f"{key}={subject}{colon}" for subject in _subjects(key, Path(snapshot))]
    return [CompletionItem(text) for text in found if text.startswith(incomplete)][:_MAX]


def _subjects(key: str, snapshot: Path) -> list[str]:
    from chaos.cluster.snapshot.whatif.changes import CHANGES
    from chaos.rehearsal.copies import read_contents

    try:
        return CHANGES[key].subjects(read_contents(snapshot))
    except NodefallError:
        return []
