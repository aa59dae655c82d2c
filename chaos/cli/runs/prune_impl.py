"""Deletes run directories after a question."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from chaos.cli.option_values import seconds_of
from chaos.cli.output import echo
from chaos.core.clock.system import SystemClock
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.store.prune import PruneDecision, PruneRules, prune, select
from chaos.core.store.run_history import read_runs


@dataclass(frozen=True, slots=True)
class PruneOptions:
    reports: Path
    keep: int | None
    older_than: str | None
    dry_run: bool
    yes: bool
    as_json: bool


def prune_runs(options: PruneOptions) -> int:
    """Delete what the options select; the exit code, that of the first run that could not be deleted.

    Raises UsageError, and Refused without a confirmation.
    """
    decisions = select(read_runs(options.reports), _rules(options), SystemClock().now())
    doomed, staying = [d for d in decisions if not d.reason], [(d, d.reason) for d in decisions if d.reason]
    if not options.as_json:
        _describe(doomed, staying)
    deleted: list[PruneDecision] = []
    failures: list[tuple[PruneDecision, NodefallError]] = []
    if doomed and not options.dry_run:
        _confirm(doomed, options)
        for decision in doomed:
            try:
                prune(decision)
                deleted.append(decision)
            except NodefallError as error:
                failures.append((decision, error))
    if options.as_json:
        staying += [(decision, failure.message) for decision, failure in failures]
        click.echo(json.dumps(_document(doomed if options.dry_run else deleted, staying, options.dry_run), indent=2))
    else:
        _conclude(doomed, deleted, options)
    echo(*(f"error: {failure.message}" for _, failure in failures), err=True)
    return int(failures[0][1].code) if failures else 0


def _rules(options: PruneOptions) -> PruneRules:
    if options.keep is None and options.older_than is None:
        raise UsageError("give --keep N, --older-than DURATION or both", hint="see nodefall runs prune --help")
    older_than = None if options.older_than is None else seconds_of("--older-than", options.older_than)
    return PruneRules(options.keep, older_than)


def _describe(doomed: Sequence[PruneDecision], staying: Sequence[tuple[PruneDecision, str]]) -> None:
    echo(*(f"{decision.run.directory}  {decision.size:,} bytes" for decision in doomed))
    echo(*(f"stays: {decision.run.directory}: {reason}" for decision, reason in staying), err=True)


def _confirm(doomed: Sequence[PruneDecision], options: PruneOptions) -> None:
    """Ask unless --yes. Raises Refused if not confirmed."""
    if options.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            "not confirmed: there is no terminal to ask on", hint="pass --yes, or --dry-run to delete nothing"
        )
    if not click.confirm(f"Delete {_total(doomed)} for good?", err=True):
        raise Refused("not confirmed: nothing was deleted")


def _conclude(doomed: Sequence[PruneDecision], deleted: Sequence[PruneDecision], options: PruneOptions) -> None:
    if options.dry_run:
        echo(f"would delete {_total(doomed)}")
    else:
        echo(f"deleted {_total(deleted)}")


def _total(decisions: Sequence[PruneDecision]) -> str:
    count = len(decisions)
    return f"{count} run{'' if count == 1 else 's'}, {sum(decision.size for decision in decisions):,} bytes"


def _document(
    doomed: Sequence[PruneDecision], staying: Sequence[tuple[PruneDecision, str]], dry_run: bool
) -> dict[str, Any]:
    """``deleted``: with --dry-run, what would be."""
    return {
        "dry_run": dry_run,
        "deleted": [_row(decision) for decision in doomed],
        "bytes": sum(decision.size for decision in doomed),
        "staying": [{**_row(decision), "reason": reason} for decision, reason in staying],
    }


def _row(decision: PruneDecision) -> dict[str, Any]:
    run = decision.run
    return {"name": run.name, "run": run.run, "directory": str(run.directory), "bytes": decision.size}
