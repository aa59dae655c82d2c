"""``result.json``: the RunResult as it is, with what its evidence numbers stand for.

One object; keys sorted, in snake_case; times in seconds since the epoch; ``version`` is RESULT_VERSION. Verdicts and
steps hold evidence numbers, and ``resolved`` maps each of them to {seq, t, kind, node, what}. Decoding the text as
RunResult gives the result back.
"""

from __future__ import annotations

import json

from msgspec import to_builtins

from chaos.model.result import RunResult
from chaos.model.timeline import Timeline
from chaos.report.outline import evidence
from chaos.report.renderer import Renderer


def render(result: RunResult, timeline: Timeline) -> str:
    """The result as JSON, in ASCII, ending in a newline."""
    document = to_builtins(result, str_keys=True)
    document["resolved"] = {str(seq): to_builtins(found) for seq, found in evidence(result, timeline).items()}
    plain = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return json.dumps(json.loads(_replace_surrogates(plain)), sort_keys=True, indent=2) + "\n"


def _replace_surrogates(text: str) -> str:
    """Lone surrogates (bytes that were no UTF-8) become U+FFFD: strict JSON readers refuse them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


RENDERER = Renderer("json", "result.json", "everything, for programs", render)
