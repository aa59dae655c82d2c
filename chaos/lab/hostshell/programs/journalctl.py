"""journalctl(1), for one unit, in JSON."""

from __future__ import annotations

import json
import re

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.options import UnknownOptionError, split_options
from chaos.lab.hostshell.programs.systemd import parse_timespan

_VALUED = {
    "-u": "unit",
    "--unit": "unit",
    "-o": "output",
    "--output": "output",
    "--output-fields": "fields",
    "--since": "since",
    "-S": "since",
    "--grep": "grep",
    "-g": "grep",
}
_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--no-pager": "no-pager"}


async def journalctl(process: Process, argv: list[str]) -> int:
    """``journalctl -q -u UNIT -o json --since=-SPAN --grep=TEXT``; exit code 1 without a match, as systemd's."""
    try:
        options, words = split_options(argv[1:], _FLAGS, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"journalctl: {error}")
    since = options.get("since", [""])[-1]
    seconds = parse_timespan(since[1:]) if since.startswith("-") else None
    complete = "quiet" in options and options.get("output") == ["json"] and "unit" in options
    if words or seconds is None or not complete:
        return process.fail("journalctl: the lab simulates only journalctl -q -u UNIT -o json --since=-SPAN")
    if not process.is_root:
        return 1
    host, pattern = process.host, options.get("grep", [""])[-1]
    records = host.machine.journal.since(host.sim.now - seconds, options["unit"][-1])
    matches = [record for record in records if re.search(pattern, record.message)]
    for record in matches:
        stamp = f"{record.t:.6f}".replace(".", "")
        process.out(json.dumps({"__REALTIME_TIMESTAMP": stamp, "MESSAGE": record.message}) + "\n")
    return 0 if matches or not pattern else 1


PROGRAMS: dict[str, Program] = {"journalctl": journalctl}
