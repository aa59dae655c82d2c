"""Suggests risks and experiments from the command line; takes the snapshot, prints and writes the results."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos.app.snapshot.take import take_snapshot
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.inventory import command_inventory, require_running
from chaos.cli.output import echo, echo_document, echo_encodable, echo_progress, write
from chaos.cli.run.rehearse import RehearsalProgress, make_directory
from chaos.core.errors import UsageError
from chaos.core.text import shell_word
from chaos.rehearsal.copies import read_contents
from chaos.rehearsal.rehearsal import cores
from chaos.rehearsal.suggest.document import Suggestion, render_suggestion
from chaos.rehearsal.suggest.formats import suggestion_markdown, suggestion_page, suggestion_text
from chaos.rehearsal.suggestion import SuggestOptions, suggest

_SNAPSHOT = "cluster.snapshot.gz"


@dataclass(frozen=True, slots=True)
class Given:
    """The options of the command."""

    inventory: str | None
    snapshot: Path | None
    out: Path | None
    top: int
    seeds: int
    namespace: str
    jobs: int | None


def suggest_and_report(given: Given, *, quiet: bool, as_json: bool) -> int:
    """Suggest, write the reports and experiments, print the result on stdout; exit code 0. Raises NodefallError."""
    if given.inventory and given.snapshot:
        raise UsageError("--inventory cannot be combined with --snapshot", hint="a snapshot is of one cluster already")
    if given.out:
        make_directory(given.out)
    with ExitStack() as stack:
        snapshot = given.snapshot or _taken(given, stack, quiet=quiet)
        progress = stack.enter_context(RehearsalProgress(0, is_shown=not quiet))
        jobs = given.jobs or cores()
        contents = read_contents(snapshot)
        found = suggest(
            SuggestOptions(
                *(snapshot, contents, given.top, given.seeds, given.namespace, jobs), progress.expect, progress.add
            )
        )
    if given.out:
        _write(given.out, found)
    if as_json:
        return echo_document(render_suggestion(found), 0)
    echo_encodable(*suggestion_text(found))
    _say_next(given, found, is_anonymous=bool(contents.header.get("anonymized")))
    return 0


def _taken(given: Given, stack: ExitStack, *, quiet: bool) -> Path:
    """A new snapshot of the cluster of the inventory: in the directory of the results, or else a temporary one."""
    folder = given.out or Path(stack.enter_context(TemporaryDirectory(prefix="nodefall-")))
    with connect_cluster(require_running(command_inventory(given.inventory))) as connection:
        take_snapshot(connection, folder / _SNAPSHOT, progress=(lambda _: None) if quiet else echo_progress)
    return folder / _SNAPSHOT


def _write(out: Path, found: Suggestion) -> None:
    write(out / "suggest.json", render_suggestion(found), private=True)
    write(out / "suggest.md", suggestion_markdown(found), private=True)
    write(out / "suggest.html", suggestion_page(found), private=True)
    for each in found.experiments:
        write(out / each.file, each.text, private=True)


def _say_next(given: Given, found: Suggestion, *, is_anonymous: bool) -> None:
    if given.out is None:
        echo("write the experiments and reports with --out DIR")
        return
    echo(f"report: {given.out / 'suggest.html'}")
    if is_anonymous:
        echo("the snapshot is anonymized: its experiments name objects by hashes, and run on no cluster")
        return
    inventory = shell_word(given.inventory) if given.inventory else "INVENTORY"
    for each in found.experiments:
        echo(f"nodefall run {shell_word(given.out / each.file)} -i {inventory}  # predicted: {each.predicted}")
