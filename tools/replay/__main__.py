"""Repeat in the lab what a recording of a real cluster shows, and compare state by state.

Exit code: 0 every recorded state matched, 1 some did not, 64 the file is no recording, or none that can be replayed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from chaos.core.errors import BadInput
from chaos.core.store import run_directory
from chaos.core.store.recording import read_recording
from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.recording import ReplayError
from tools.replay.compare import count_states
from tools.replay.play import replay


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.replay", description=__doc__)
    parser.add_argument("recording", type=Path, help="a file, or the directory of a run")
    parser.add_argument("--count", action="store_true", help="only count the recorded states, without a lab")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        report = _report(options.recording, options.count)
    except (ReplayError, BadInput, msgspec.DecodeError) as error:
        sys.stderr.write(f"{error}\n" if isinstance(error, BadInput) else f"{options.recording}: {error}\n")
        return 64
    sys.stdout.write(f"{json.dumps(report, indent=2) if options.json else _text(report)}\n")
    return 0 if report.get("matched", report["states"]) == report["states"] and not report.get("differences") else 1


def _report(recording: Path, only_count: bool) -> dict[str, Any]:
    recorded = parse(_lines(recording))
    if only_count:
        return {"recording": str(recording), "states": count_states(recorded)}
    result = replay(recorded)
    return {
        "recording": str(recording),
        "matched": result.matched,
        "states": result.total,
        "seed": result.seed,
        "differences": [{"subject": item.subject, "t": item.t, "text": item.text} for item in result.differences],
        "findings": result.findings,
    }


def _text(report: dict[str, Any]) -> str:
    if "matched" not in report:
        return f"{report['states']} states"
    lines = [f"{item['t']:9.3f} s  {item['subject']}: {item['text']}" for item in report["differences"]]
    return "\n".join([*lines, *report["findings"], f"{report['matched']} of {report['states']} states matched"])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    file = path / run_directory.RECORDING if path.is_dir() else path
    for line in read_recording(file):
        entry = {"t": line.t, "kind": line.kind, "type": line.type, "object": msgspec.json.decode(line.object)}
        yield entry if isinstance(line.node, msgspec.UnsetType) else {**entry, "node": line.node}


if __name__ == "__main__":
    sys.exit(main())
