"""Compares from the command line, and prints and writes the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chaos.cli.output import echo, echo_document, echo_encodable, write
from chaos.cli.run.rehearse import RehearsalProgress
from chaos.core.errors import UsageError
from chaos.rehearsal.comparisons import CompareOptions, compare_all
from chaos.reports.comparison.comparison import Comparison
from chaos.reports.comparison.formats import comparison_document, comparison_markdown, comparison_page, comparison_text


def compare_and_report(options: CompareOptions, out: Path | None, *, quiet: bool, as_json: bool) -> int:
    """Compare, write the reports, and print the result on stdout; the exit code. Raises NodefallError."""
    _check_sources(options)
    with RehearsalProgress(len(options.seeds), is_shown=not quiet and options.snapshot is not None) as progress:
        comparisons = compare_all(replace(options, report=progress.add))
    code = int(max(each.exit_code for each in comparisons))
    document = json.dumps(comparison_document(comparisons), indent=2) + "\n"
    if out:
        _write_reports(out, comparisons, document)
    if as_json:
        return echo_document(document, code)
    echo_encodable(*comparison_text(comparisons))
    if out:
        echo(f"report: {out / 'comparison.html'}")
    return code


def _check_sources(options: CompareOptions) -> None:
    """Raises UsageError for more than one source of comparison, or for one with several runs."""
    sources = {"--snapshot": options.snapshot, "--with": options.other, "--prediction": options.prediction}
    given = [name for name, value in sources.items() if value]
    if len(given) > 1:
        raise UsageError(f"{given[0]} cannot be combined with {given[1]}")
    if given and len(options.names) > 1:
        raise UsageError(f"{given[0]} is for a single RUN, not for {len(options.names)}")


def _write_reports(out: Path, comparisons: Sequence[Comparison], document: str) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}", hint="give another directory") from error
    write(out / "comparison.json", document, private=True)
    write(out / "comparison.md", comparison_markdown(comparisons), private=True)
    write(out / "comparison.html", comparison_page(comparisons), private=True)
