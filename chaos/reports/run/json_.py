"""``result.json``: the RunResult and the entries that its evidence numbers refer to.

One object; keys sorted, in snake_case; times in seconds since the epoch, each with RFC 3339 beside it
(``started_rfc3339``); durations to the microsecond; ``version`` is RESULT_VERSION. Verdicts and
steps hold evidence numbers, and ``resolved`` maps each of them to {seq, t, kind, node, what}. Decoding the text as
RunResult gives the result back. Within a version keys are only added. Keys of 0.1.0 that have been renamed are written,
too; they are deprecated. A verdict has ``limits`` only where an expectation limits a measured value, and ``known`` only
if it is violated as known: {versions, issue, instead}.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import to_builtins

from chaos.core.moments import add_rfc3339, rounded
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.reports.run.outline import evidence
from chaos.reports.run.renderer import Renderer

_FORMER_KEYS = {
    "started_by": "by",
    "leftovers": "left_behind",
    "nodefall_version": "nodefall",
    "steady_state": "steady",
}


def render(result: RunResult, timeline: Timeline) -> str:
    """Render the result as JSON, in ASCII, ending in a newline."""
    document = to_builtins(result, str_keys=True)
    document["resolved"] = {str(seq): to_builtins(found) for seq, found in evidence(result, timeline).items()}
    _settle_keys(document)
    return to_text({**add_rfc3339(document), "facts": document["facts"]})


def to_text(document: dict[str, Any]) -> str:
    """JSON in ASCII, keys sorted, indented, ending in a newline.

    Lone surrogates (bytes that were not UTF-8) become U+FFFD: strict JSON readers reject them.
    """
    plain = json.dumps(document, ensure_ascii=False, allow_nan=False)
    whole = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return json.dumps(json.loads(whole), sort_keys=True, indent=2) + "\n"


def _settle_keys(document: dict[str, Any]) -> None:
    """Add the deprecated keys, and leave out ``limits`` and ``known`` without any."""
    for step in document["steps"]:
        step["shown"] = "not shown" if step["proof_status"] == "unproven" else step["proof_status"]
    for part in ("steady_state", "hypothesis", "abort", "recovery"):
        for verdict in document[part]:
            verdict["assumed"] = verdict["assumed_facts"]
            verdict["bound"] = rounded(verdict["bound"])
            for key in ("limits", "known"):
                if not verdict[key]:
                    del verdict[key]
    document.update({former: document[key] for key, former in _FORMER_KEYS.items()})


RENDERER = Renderer("json", "result.json", "the complete result, for programs", render)
