"""Why a cluster was not created, and what happens to its containers: they are deleted, or kept to be looked at."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.cli.kind.output import KnownCause, known_cause
from chaos.cli.kind.tools import Tools
from chaos.core.errors import NodefallError

NAME_CONFLICT = "already exist for a cluster with the name"  # pkg/cluster/internal/create/create.go of kind
RETAIN_HINT = "give --retain to keep the failed cluster and its logs"


@contextmanager
def explained(tools: Tools, name: str) -> Iterator[None]:
    """Add a known cause, which the logs of the nodes may show, to an error."""
    try:
        yield
    except NodefallError as error:
        if NAME_CONFLICT in error.message or not (cause := _find_cause(error, tools, name)):
            raise
        message = error.message if cause.line in error.message else f"{error.message}; {cause.line}"
        raise NodefallError(message, hint=cause.hint) from error


def _find_cause(error: NodefallError, tools: Tools, name: str) -> KnownCause | None:
    if cause := known_cause([error.message]):
        return KnownCause(error.message, cause.hint)
    try:
        for node in tools.nodes(name):
            if cause := known_cause(tools.log(node)):
                return KnownCause(f"{node}: {cause.line}", cause.hint)
    except NodefallError:  # the first error says more than that of an engine that does not respond
        return None
    return None


def down_command(name: str, out: Path) -> str:
    """The command that removes the cluster and its files."""
    given = "" if out == Path(f"{name}.yaml") else f" --out {shlex.quote(str(out))}"
    return f"nodefall kind down --name {name}{given}"


def keep_hint(tools: Tools, name: str, out: Path) -> str:
    """How to look at a cluster that was kept, and how to remove it."""
    return f"look at it with {tools.shown} export logs --name {name}, and remove it with {down_command(name, out)}"
