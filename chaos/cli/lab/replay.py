"""Compares the lab with a recording of a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.cli.output import echo, to_json
from chaos.core.errors import Exit, NodefallError, bad_input
from chaos.core.store import run_directory
from chaos.core.store.recording import read_recording
from chaos.lab.facade import ReplayError, count_states, parse, replay


def replay_recording(recording: Path, only_count: bool, as_json: bool) -> int:
    """Print the comparison; the exit code. Raises BadInput, and NodefallError if the lab cannot replay it."""
    try:
        recorded = parse(_lines(recording))
    except ReplayError as error:
        raise bad_input(str(recording), str(error)) from error
    if only_count:
        total = count_states(recorded)
        _echo({"recording": str(recording), "states": total}, [f"{total} states"], as_json)
        return Exit.HELD
    try:
        result = replay(recorded)
    except ReplayError as error:
        raise NodefallError(f"{recording}: {error}", hint="count its states with --count") from error
    differences = [{"subject": item.subject, "t": item.t, "text": item.text} for item in result.differences]
    report = {"recording": str(recording), "matched": result.matched, "states": result.total, "seed": result.seed}
    lines = [f"{item.t:9.3f} s  {item.subject}: {item.text}" for item in result.differences]
    lines += result.findings
    lines.append(f"{result.matched} of {result.total} states matched")
    _echo({**report, "differences": differences, "findings": result.findings}, lines, as_json)
    return Exit.HELD if result.is_match else Exit.VIOLATED


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    file = path / run_directory.RECORDING if path.is_dir() else path
    for line in read_recording(file, check_objects=True):
        entry = {"t": line.t, "kind": line.kind, "type": line.type, "object": msgspec.json.decode(line.object)}
        yield entry if isinstance(line.node, msgspec.UnsetType) else {**entry, "node": line.node}


def _echo(report: dict[str, Any], lines: list[str], as_json: bool) -> None:
    if as_json:
        click.echo(to_json(report))
    else:
        echo(*lines)
