"""Which objects belong to a set at a moment, if some versions were received later than they happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.core.assertion import NotYetDecidable, Undecidable, View
from chaos.core.kube import full_name
from chaos.core.recording import USUAL_LAG
from chaos.core.timeline import History, Version

Includes = Callable[[Version[Any]], bool]


def require_complete(view: View, source: str, moment: float, where: str = "the beginning") -> None:
    """Raise NotYetDecidable unless everything of the resource from before ``moment`` is proven to be received.

    For a view with a lookback, shortly before is enough, without objects that came and went.
    """
    log = view.timeline.currency
    if (log.listed_until(source) if view.lookback else log.until(source)) < moment - view.lookback:
        why = f"the {source} at {where} may not all have been received yet"
        raise NotYetDecidable(why, _remedy(source))


def is_member(
    history: History[Any], moment: float, source: str, includes: Includes, where: str = "the beginning"
) -> bool:
    """Whether the object belongs to the set at the moment. Raises Undecidable if it may have joined or left late."""
    version = history.at(moment)
    result = version is not None and not version.is_deleted and includes(version)
    for late in history.after(moment):
        if late.earliest < moment and late.t - late.earliest > USUAL_LAG:
            later = not late.is_deleted and includes(late)
            if later is not result:
                name = full_name(late.object.metadata)
                why = f"a change of {name} was received {late.t - moment:.1f} s later, and may be from before"
                raise Undecidable(f"the {source} at {where} are unknown: {why}", _remedy(source))
    return result


def may_be_gone(history: History[Any], moment: float) -> bool:
    """Whether a deletion that was received later may have happened before the moment."""
    return any(late.is_deleted and late.earliest < moment for late in history.after(moment))


def _remedy(source: str) -> str:
    return f"a watch of the {source} that is proven current at that moment"
