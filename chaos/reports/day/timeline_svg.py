"""The timeline of a day as SVG: a lane for each cluster with its runs, waits, halts and approvals."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.reports.day.record import ClusterRecord
from chaos.reports.day.view import DayView, RunView, moment_of
from chaos.reports.run.markup import Html, join, tag

_WIDTH, _LABEL, _LANE, _TOP, _BAR = 1000, 120, 40, 24, 22
_LETTER = 7.0  # about the width of one
_SHORTEST = 4  # letters of a name that is cut off
_STEPS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 30 * 86400)
_MAX_TICKS = 9


@dataclass(frozen=True, slots=True)
class _Axis:
    """From ``begin`` to ``end``, in seconds since the epoch."""

    begin: float
    end: float

    def x(self, t: float) -> float:
        fraction = (min(max(t, self.begin), self.end) - self.begin) / (self.end - self.begin)
        return _LABEL + fraction * (_WIDTH - _LABEL - 30)

    def ticks(self) -> list[int]:
        """Round times, at most nine but on a day that took a year."""
        step = next((step for step in _STEPS if (self.end - self.begin) / step <= _MAX_TICKS), _STEPS[-1])
        first = -int(-self.begin // step)
        return [number * step for number in range(first, min(int(self.end // step), first + 400) + 1)]


def render_timeline(view: DayView) -> Html:
    """The drawing; "" for a day of which no time is known."""
    times = [t for record in view.records for t in _times(view, record) if moment_of(t)]
    if not times:
        return Html()
    axis = _Axis(min(times), max(*times, min(times) + 1.0))
    height = _TOP + _LANE * len(view.records)
    lanes = [_lane(view, record, axis, _TOP + _LANE * number) for number, record in enumerate(view.records)]
    ticks = [_tick(view, t, axis, height) for t in axis.ticks()]
    title = f"Timeline from {view.when(axis.begin)} to {view.when(axis.end)}; the table below has the same"
    box = {"viewBox": f"0 0 {_WIDTH} {height}", "role": "img", "class_": "calendar"}
    return tag("svg", tag("title", title), join(ticks), join(lanes), **box)


def _times(view: DayView, record: ClusterRecord) -> list[float]:
    state = record.state
    runs = [t for run in view.runs if run.cluster == record.cluster for t in (run.run.begun, run.run.ended)]
    waits = [t for wait in state.waits for t in (wait.since, wait.ended)]
    return [t for t in (*runs, *waits, *(halt.at for halt in state.halts)) if t is not None]


def _tick(view: DayView, t: float, axis: _Axis, height: int) -> Html:
    moment, x = moment_of(t), f"{axis.x(t):.1f}"
    local = moment.astimezone(view.calendar.zone) if moment else None
    text = "" if local is None else f"{local:%d %b %H:%M}" if axis.end - axis.begin > 86400 else f"{local:%H:%M:%S}"
    line = tag("line", x1=x, x2=x, y1=str(_TOP - 4), y2=str(height), class_="tick")
    return tag("g", tag("text", text, x=x, y="13", class_="hour"), line)


def _lane(view: DayView, record: ClusterRecord, axis: _Axis, y: int) -> Html:
    state = record.state
    name = record.cluster if len(record.cluster) <= 16 else f"{record.cluster[:15]}…"
    parts = [tag("text", name, x="0", y=str(y + 18), class_="date")]
    for wait in state.waits:
        title = f"waits for {wait.what}: {'; then '.join(wait.reasons)}"
        end = wait.since if wait.ended is None else wait.ended
        parts.append(_bar(title, "wait", axis, (wait.since, end), (y + 8, _BAR - 12)))
    parts += [_run(view, run, axis, y) for run in view.runs if run.cluster == record.cluster]
    parts += [_line(f"halted by {halt.by}: {halt.reason}", "halted", axis.x(halt.at), y) for halt in state.halts]
    parts += [_line(f"approved by {each.by}", "approved", axis.x(each.at), y) for each in state.approvals]
    return tag("g", join(parts))


def _run(view: DayView, run: RunView, axis: _Axis, y: int) -> Html:
    begin = run.run.begun
    if begin is None or moment_of(begin) is None:
        return Html()
    end = begin if run.run.ended is None else run.run.ended
    label = view.label_of_row(run.row)
    bar = _bar(f"{label}: {run.word}, {view.when(begin)}", f"run {run.word}", axis, (begin, end), (y + 2, _BAR))
    room = int((axis.x(end) - axis.x(begin) - 8) / _LETTER)
    shown = label if len(label) <= room else f"{label[: room - 1]}…" if room >= _SHORTEST else ""
    text = tag("text", shown, x=f"{axis.x(begin) + 5:.1f}", y=str(y + 17), class_="on-bar")
    return join((bar, text))


def _bar(title: str, kind: str, axis: _Axis, times: tuple[float, float], at: tuple[int, int]) -> Html:
    """``times``: from and to. ``at``: y and height."""
    x = axis.x(times[0])
    box = {"x": f"{x:.1f}", "y": str(at[0]), "width": f"{max(3.0, axis.x(times[1]) - x):.1f}", "height": str(at[1])}
    return tag("g", tag("title", title), tag("rect", **box, class_=kind))


def _line(title: str, kind: str, x: float, y: int) -> Html:
    at = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": str(y - 2), "y2": str(y + _BAR + 6)}
    return tag("g", tag("title", title), tag("line", **at, class_=kind))
