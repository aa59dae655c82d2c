"""One frame of the live view: a pure function of its state and the size of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.text import Text

from chaos.cli.run.view.state import ViewState
from chaos.cli.run.view.tables import event_lines, expectation_lines, node_lines, shorten, workload_lines
from chaos.core.duration import format_duration, timestamp
from chaos.core.text import escape_for_encoding

_SILENT_SECONDS = 5.0  # from which on the header says that nothing was heard of the run
_MIN_EVENTS = 3
_ROOMY = 24  # lines of a terminal from which on there are empty lines between the tables
_FIXED = 3  # lines that are always there: the header's two, and the keys


def frame(state: ViewState, width: int, height: int, encoding: str = "utf-8") -> list[Text]:
    """``height`` lines of at most ``width`` cells. Narrow terminals lack columns, low ones rows."""
    gap = 1 if height >= _ROOMY else 0
    free = height - _FIXED - gap
    progress, cluster = state.progress, state.cluster
    # Each may take its part of what those before it have left, and the events take the rest.
    shares: list[tuple[float, Callable[[int], list[Text]]]] = [
        (0.55, lambda room: expectation_lines(progress, width, room, encoding)),
        (0.5, lambda room: node_lines(cluster, progress, width, room, encoding)),
        (0.85, lambda room: workload_lines(cluster, progress, width, room, encoding)),
    ]
    tables: list[list[Text]] = []
    for share, draw in shares:
        if found := draw(int((free - _MIN_EVENTS - 1) * share)):
            tables.append(found)
            free -= len(found) + gap
    tables.append(event_lines(state.last_events(free - 1), width, encoding))
    body: list[Text] = [*_header(state, width, encoding)]
    for found in tables:
        body += [*_blank(gap), *found]
    body = body[: height - 1]
    lines = [*body, *_blank(height - 1 - len(body)), _keys(state, width, encoding)][-height:]
    for line in lines:
        line.plain = escape_for_encoding(line.plain, encoding)  # the ellipses of what was shortened
    return lines


def _header(state: ViewState, width: int, encoding: str) -> list[Text]:
    progress, cluster = state.progress, state.cluster
    clock = "" if progress.now is None else timestamp(progress.now)[11:]
    phase = f"stopping: {progress.phase_name}" if state.is_stopping else progress.phase_name
    busy = f"no news for {state.silent:.0f} s" if state.silent >= _SILENT_SECONDS else ""
    first = "  ".join(part for part in (phase, progress.offset(progress.now), clock, busy) if part)
    name = cluster.experiment + (" (simulated cluster)" if cluster.is_simulated else "")
    return [_ends(first, name, width, encoding, "bold"), _ends(_countdowns(state), _nodes(state), width, encoding, "")]


def _countdowns(state: ViewState) -> str:
    progress = state.progress
    due = progress.due()
    parts = [f"next deadline in {progress.remaining(due[0])}"] if due else []
    if progress.judgement and progress.now is not None:
        left = progress.seconds_to(progress.judgement.ends)
        parts.append(f"maxDuration in {format_duration(round(left))}")
    return "  ".join(parts)


def _nodes(state: ViewState) -> str:
    nodes = state.cluster.nodes
    return f"nodes {nodes.ready}/{nodes.count} Ready" if nodes.count else ""


def _ends(left: str, right: str, width: int, encoding: str, style: str) -> Text:
    """``left`` and ``right`` at the two ends of a line; ``right`` is left out if there is no room for both."""
    left = shorten(escape_for_encoding(left, encoding), width)
    right = escape_for_encoding(right, encoding)
    space = width - cell_len(left) - cell_len(right)
    text = left + " " * space + right if right and space >= 2 else left
    return Text(text, style, no_wrap=True)


def _keys(state: ViewState, width: int, encoding: str) -> Text:
    """What the keys do now."""
    parts: Sequence[str] = ()
    if state.has_keys:
        stop = "stopping, undoing first" if state.is_stopping else "q stop and undo"
        news = f" ({state.news} new)" if state.news else ""
        pause = f"space go on{news}" if state.is_paused else "space pause"
        report = "o do not open the report" if state.opens_report else "o open the report at the end"
        parts = (stop, pause, report)
    text = shorten(escape_for_encoding("   ".join(parts), encoding), width)
    return Text(text, "reverse" if text else "", no_wrap=True)


def _blank(count: int) -> list[Text]:
    return [Text("", no_wrap=True) for _ in range(max(0, count))]
