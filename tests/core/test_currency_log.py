"""Intervals of versions: what the proofs before and after them leave.

Bounds of moments by resourceVersions, compared with all that the reads say.
"""

from __future__ import annotations

import math
from itertools import accumulate

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.currency_log import CurrencyLog
from chaos.core.kube import Lease, LeaseSpec, Node, Pod
from chaos.core.kube.meta import Metadata
from chaos.core.recording import Currency
from chaos.core.time_bounds import OrderBounds

READS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30), st.integers(0, 15)), max_size=12)
CEILINGS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 40)), max_size=6)


def version_of(version: int, uid: str = "u", created: str | None = None) -> Pod:
    return Pod(metadata=Metadata(name="n", uid=uid, resource_version=str(version), creation_timestamp=created))


def proven(*proofs: tuple[float, int, float, list[str]]) -> CurrencyLog:
    """A log with proofs: begin, resourceVersion and answer of the list, and what was behind."""
    log = CurrencyLog()
    for until, version, answered, behind in proofs:
        log.add("nodes", Currency(until, behind, str(version), until - 5, until), answered)
    return log


def test_without_proofs_the_time_of_receipt_is_exact() -> None:
    assert CurrencyLog().interval("nodes", version_of(5), 5, 10.0) == (math.inf, 10.0)
    assert CurrencyLog().until("nodes") == math.inf
    assert proven((1, 1, 1, [])).until("pods") == math.inf


def test_a_version_is_after_the_last_list_that_did_not_have_it_and_before_the_first_that_could_have() -> None:
    log = proven((10, 100, 11, []), (20, 200, 21, ["u"]), (30, 300, 31, ["u"]))
    assert log.interval("nodes", version_of(250), 250, 40.0) == (20, 31)
    assert log.interval("nodes", version_of(150), 150, 40.0) == (10, 21)
    assert log.interval("nodes", version_of(350), 350, 40.0) == (30, 40.0)


def test_a_resource_in_a_separate_store_says_nothing_of_the_others() -> None:
    """An API server with ``--etcd-servers-overrides``: the numbers of Leases are ahead of those of Nodes."""
    log = proven((10, 100, 11, []))
    log.add("leases", Currency(12, [], "5000", 7, 12), 13)
    before = log.is_one_store
    log.add("nodes", Currency(14, [], "110", 9, 14), 15)
    assert (before, log.is_one_store) == (True, False)
    log.add("leases", Currency(16, [], "5010", 11, 16), 17)
    assert log.interval("nodes", version_of(105), 105, 20.0) == (10, 15)
    assert log.interval("leases", version_of(5005), 5005, 20.0) == (12, 17)
    assert log.narrowed([], 20.0) == []


def test_answers_in_another_order() -> None:
    """The first list was answered after 15 s with what was new by then; the second, sent later, knew less."""
    log = proven((10, 240, 25, []), (12, 130, 26, []))
    assert log.interval("nodes", version_of(200), 200, 30.0) == (12, 25), "the first list had it"
    assert log.interval("nodes", version_of(250), 250, 30.0) == (12, 30.0)


def test_reads_and_versions_of_other_resources_narrow_as_well_but_not_those_of_events() -> None:
    log = proven((10, 100, 11, []))
    log.add("pods", Currency(20, [], "200", 20, 20), 22)
    log.add("events", Currency(25, [], "290", 25, 25), 26)
    assert log.interval("nodes", version_of(300), 300, 40.0) == (20, 40.0)
    assert log.interval("leases", version_of(350), 350, 41.0) == (math.inf, 41.0), "its own watch was never proven"
    assert log.interval("nodes", version_of(320), 320, 42.0) == (20, 41.0), "by when a later Lease was received"
    assert log.interval("nodes", version_of(150), 150, 42.0) == (10, 22)


def test_a_late_answer_shows_that_a_version_is_not_late() -> None:
    """The read was sent at 18, was handled before the version came at 20, and is answered at 29."""
    log = proven((1, 50, 12, []), (10, 100, 12, []))
    log.interval("nodes", version_of(300), 300, 20.0)
    assert [(window.start, window.end) for window in log.late_windows("nodes")] == [(10, 20.0)]
    log.add("nodes", Currency(18, [], "200", 18, 18), 29)
    assert log.late_windows("nodes") == []
    log.interval("nodes", version_of(150), 150, 60.0)
    assert [(window.start, window.end) for window in log.late_windows("nodes")] == [(10, 60.0)], "settled"


def test_resource_versions_that_are_no_numbers_say_nothing() -> None:
    log = CurrencyLog()
    log.add("nodes", Currency(10, [], "abc", read=10), 11)
    log.add("nodes", Currency(20, ["u"], "def", read=20), 21)
    assert log.interval("nodes", version_of(0), 0, 30.0) == (10, 30.0)
    assert log.interval("nodes", version_of(0, "other"), 0, 30.0) == (20, 30.0)


def test_a_new_object_from_before_the_last_list_had_gone_by_then() -> None:
    log = proven((10, 100, 11, []), (20, 200, 21, []), (30, 300, 31, []))
    assert log.interval("nodes", version_of(290), 290, 40.0, is_new=True) == (25, 31)
    assert log.until("nodes", "u") == 25, "as nothing is known of its end"
    log.interval("nodes", version_of(310, "newer"), 310, 40.0, is_new=True)
    assert log.until("nodes", "newer") == 30


def test_currency_is_that_of_the_object_or_of_all() -> None:
    log = proven((10, 100, 11, []), (20, 200, 21, ["late"]), (30, 300, 31, ["late"]))
    assert (log.until("nodes", "late"), log.until("nodes", "other"), log.until("nodes")) == (10, 30, 10)
    assert (log.listed_until("nodes"), log.listed_until("pods")) == (10, math.inf)
    log.add("nodes", Currency(25, [], "250", 20, 25), 32)
    assert log.until("nodes", "other") == 30, "overtaken"
    log.add("nodes", Currency(40, [], "400", 40, 40), 41)
    assert log.until("nodes") == 40


def test_the_newest_time_in_an_object_narrows_a_late_one() -> None:
    log = proven((10, 100, 11, []))
    fresh = version_of(150, created="1970-01-01T00:00:35Z")
    assert log.interval("nodes", fresh, 150, 40.0) == (34.0, 40.0), "a second for the clock"
    assert log.interval("nodes", version_of(150, created="1970-01-01T00:01:00Z"), 150, 40.0) == (10, 40.0), "the future"
    log.note_renewal(Lease(metadata=Metadata(), spec=LeaseSpec(renew_time="1970-01-01T00:00:55Z")), 40.0)
    assert log.interval("nodes", fresh, 150, 40.0) == (19.0, 40.0), "a clock of the cluster is 15 s ahead"


def test_a_new_object_shows_that_the_clock_of_the_api_server_is_ahead() -> None:
    """By 20 s: then an object that is received at 40, and has a time of 35, may be from 15."""
    log = proven((1, 50, 2, []), (10, 100, 11, []))
    log.interval("nodes", version_of(110, "new", created="1970-01-01T00:00:32Z"), 110, 12.0, is_new=True)
    late = version_of(150, created="1970-01-01T00:00:35Z")
    assert log.interval("nodes", late, 150, 40.0) == (14.0, 40.0)


def test_the_time_of_a_field_manager_narrows_a_node() -> None:
    manager = {"manager": "m", "operation": "Update", "time": "1970-01-01T00:00:38Z"}
    fields: dict[str, object] = {"fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    document = {"metadata": {"name": "n", "uid": "u", "managedFields": [manager | fields]}}
    log = proven((10, 100, 11, []))
    assert log.interval("nodes", msgspec.convert(document, Node), 150, 40.0) == (37.0, 40.0)


def test_long_lags_and_pauses_are_remembered() -> None:
    log = proven((10, 100, 11, []), (11, 110, 12, ["late"]), *((t, t * 10, t + 1, ["late"]) for t in range(12, 30)))
    assert log.unproven("nodes", 30) == [(10, 29)]
    log.add("nodes", Currency(30, [], "300"), 31)
    assert log.unproven("nodes", 31) == [(10, 29)]
    log.add("nodes", Currency(60, [], "600"), 61)
    assert log.unproven("nodes", 80) == [(10, 29), (30, 60)], "no proof for 30 s"
    assert log.unproven("nodes", 90)[-1] == (60, 90), "and none at the end"
    assert log.unproven("pods", 90) == []


def test_a_short_lag_is_no_news() -> None:
    log = proven((10, 100, 11, []), (15, 150, 16, ["late"]), (19, 190, 20, []), (40, 400, 41, []))
    assert log.unproven("nodes", 50) == []


def test_late_windows() -> None:
    log = proven((10, 100, 11, []))
    assert log.late_windows("nodes") == []
    for t in (12.0, 15.0, 18.0):
        log.interval("nodes", version_of(150), 150, t)
    (window,) = log.late_windows("nodes")
    assert (window.start, window.end) == (10, 18.0)


@given(READS, CEILINGS, st.integers(1, 21))
def test_bounds_are_the_narrowest_that_the_reads_leave(
    reads: list[tuple[int, int, int]], ceilings: list[tuple[int, int]], order: int
) -> None:
    bounds = OrderBounds()
    for version, begin, seconds in reads:
        bounds.add_read(version, begin, begin + seconds)
    for version, t in ceilings:
        bounds.add_ceiling(version, t)
    earliest = max((begin for version, begin, _ in reads if version < order), default=-math.inf)
    answers = [*((version, begin + seconds) for version, begin, seconds in reads), *ceilings]
    latest = min((t for version, t in answers if version >= order), default=math.inf)
    assert bounds.interval(order) == (earliest, latest)
    known: list[tuple[int, float, int]] = [(version, begin, begin + seconds) for version, begin, seconds in reads]
    known += [(version, -math.inf, t) for version, t in ceilings]
    crossed = any(lower < version and by < begin for lower, begin, _ in known for version, _, by in known)
    assert bounds.is_consistent != crossed
    assert bool(bounds) == (bool(reads) and not crossed)


@given(st.lists(st.floats(0.0001, 0.02), min_size=1, max_size=200))
def test_changes_in_quick_succession_share_bounds(steps: list[float]) -> None:
    bounds, times = OrderBounds(), list(accumulate(steps))
    for order, t in enumerate(times, start=1):
        bounds.add_ceiling(order, t)
        assert bounds.interval(order) == (-math.inf, t)
    for order, t in enumerate(times, start=1):
        assert t <= bounds.interval(order)[1] < t + 0.01
    assert len(bounds._ceilings[0]) <= 2 * times[-1] / 0.01 + 2
