"""What a comparison says, line by line: the headline, each difference, and its mechanism. Pure."""

from __future__ import annotations

from chaos.core.text import count_of, printable
from chaos.reports.comparison.comparison import Comparison, ExpectationRow, most_surprising
from chaos.verdicts.outcome.acceptance import Row, Standing, mechanism_of

_AS = {Standing.LATE: "as late", Standing.EARLY: "as early"}
_NAMED = 3  # measures that follow another, in a sentence
SIMULATED_SIDE = "At least one side of this comparison was simulated: it shows what the lab models."


def headline(comparison: Comparison) -> str:
    """What surprises most, in one line."""
    changed = [row for row in comparison.expectations if row.changed]
    if changed:
        return f"{verdict_sentence(changed[0])}{_more(comparison, 1)}"
    row = most_surprising(comparison.first)
    if row is not None:
        followers = len(comparison.followers(row))
        as_late = f"; {count_of(followers, 'measure')} after it {_as_late(row, followers)}" if followers else ""
        return f"{row_sentence(row)}{as_late}{_more(comparison, 1 + followers)}"
    if comparison.changed:
        return f"{verdict_sentence(comparison.changed[0])}{_more(comparison, 1)}"
    known = sum(row.standing is Standing.INSIDE for row in comparison.rows)
    if not comparison.rows:
        return f"nothing unexpected: nothing happened, as {source(comparison)}"
    return f"nothing unexpected: {count_of(known, 'measure')} as {source(comparison)}"


def counts(comparison: Comparison) -> str:
    """``84 inside, 2 later than predicted``."""
    found = [row.standing for row in comparison.rows]
    return ", ".join(f"{found.count(each)} {each}" for each in Standing if each in found) or "nothing happened"


def source(comparison: Comparison) -> str:
    """``predicted by 20 seeds`` or ``in the run before``."""
    expected = comparison.expected
    if expected.simulated and not comparison.side.simulated:
        return f"predicted by {count_of(expected.outcomes, 'seed')} of {printable(expected.name)}"
    return f"in {printable(expected.name)}"


def row_sentence(row: Row) -> str:
    """``node victim: Ready=Unknown at 62.9 s, later than predicted (44.8 to 60.8 s)``."""
    name = printable(str(row.measure))
    if row.seconds is None:
        return f"{name}: {row.standing} ({band_text(row)})"
    if row.band is None:
        return f"{name} at {row.seconds:.1f} s: {row.standing}"
    return f"{name} at {row.seconds:.1f} s, {row.standing} ({band_text(row)})"


def followers_text(comparison: Comparison, row: Row) -> str:
    """``10 measures after it are as late: pod 1 of shop/web on victim: deleting, ...``; "" without any."""
    found = comparison.followers(row)
    if not found:
        return ""
    names = ", ".join(printable(str(each.measure)) for each in found[:_NAMED])
    more = ", ..." if len(found) > _NAMED else ""
    return f"{count_of(len(found), 'measure')} after it {_as_late(row, len(found))}: {names}{more}"


def _as_late(row: Row, number: int) -> str:
    return f"{'is' if number == 1 else 'are'} {_AS[row.standing]}"


def band_text(row: Row) -> str:
    """The band in seconds, and its share if not every outcome has it; "" without one."""
    band = row.band
    if band is None:
        return ""
    low, high = f"{band.low:.1f}", f"{band.high:.1f}"
    share = "" if band.happened == band.outcomes else f", {band.happened} of {band.outcomes}"
    return (f"{low} s" if low == high else f"{low} to {high} s") + share


def accepted_text(row: Row) -> str:
    """The accepted interval in seconds; "" without a band."""
    return f"{row.low:.1f} to {row.high:.1f} s" if row.band else ""


def seconds_text(seconds: float | None) -> str:
    """Seconds, or never."""
    return "never" if seconds is None else f"{seconds:.1f} s"


def why_text(comparison: Comparison, row: Row) -> str:
    """The measure that it follows, or a stall, or the mechanism behind it and where that is described."""
    before = comparison.follows.get(row.measure)
    if before is not None:
        return f"{_AS[row.standing]} as {printable(str(before))} before it"
    mechanism = mechanism_of(row.measure)
    text = f"{mechanism.text} ({mechanism.link})"
    stalled = comparison.stalled(row)
    return f"the API server or its clients stalled for {stalled:.0f} s before it; {text}" if stalled else text


def verdict_sentence(row: ExpectationRow) -> str:
    """``replaced: violated, predicted held (20)``."""
    name, predicted = printable(row.name), predicted_text(row)
    if row.changed:
        return f"{name}: {row.status}, but predicted {predicted}"
    return f"{name}: {row.status} after {seconds_text(row.seconds)}, {row.standing} ({duration_text(row)})"


def predicted_text(row: ExpectationRow) -> str:
    """Predicted verdicts with their numbers."""
    if row.predicted is None:
        return "not predicted"
    total = sum(row.predicted.verdicts.values())
    return ", ".join(
        status if count == total else f"{status} ({count} of {total})"
        for status, count in row.predicted.verdicts.items()
    )


def duration_text(row: ExpectationRow) -> str:
    """The predicted duration; "" without one."""
    band = row.predicted
    if band is None or band.low is None or band.high is None:
        return ""
    return f"{band.low:.1f} to {band.high:.1f} s" if band.high > band.low else f"{band.low:.1f} s"


def _more(comparison: Comparison, shown: int) -> str:
    count = len(comparison.outside) + len(comparison.changed) - shown
    return f"; and {count_of(count, 'other difference')}" if count else ""
