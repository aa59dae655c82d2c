"""Whatever an assertion raises becomes a verdict: unknown is never held or violated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from chaos.core.assertion import NotYetDecidable, Undecidable
from chaos.core.experiment import Expectation
from chaos.core.recording import LAG_BOUND
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.phrasing import remedy_of, with_remedy

_LATE_SAMPLE_GRACE = 5.0  # seconds after a deadline in which, live, a reading of the time before it may still arrive
_log = logging.getLogger(__name__)


def guard(expectation: Expectation, context: JudgeContext, horizon: float, judge: Callable[[], Verdict]) -> Verdict:
    """Return the verdict, inconclusive after an error, with the remedy if it is inconclusive."""
    verdict = Verdict(expectation.title, expectation.assert_ or "order", Status.INCONCLUSIVE, "")
    remedy = remedy_of(expectation, context.experiment)
    try:
        verdict = judge()
    except NotYetDecidable as error:
        verdict = replace(verdict, status=Status.PENDING, because=str(error))
        remedy = error.remedy
    except Undecidable as error:
        verdict = replace(verdict, because=str(error))
        remedy = error.remedy or remedy
    except Exception as error:  # noqa: BLE001 - a bug in an assertion proves nothing, and must not end the run
        _log.exception("judging %r failed", expectation.title)
        verdict = replace(verdict, because=f"the judge failed: {type(error).__name__}: {error}")
        remedy = "a fix of this bug of nodefall; please report it"
    else:
        if verdict.status is Status.PENDING:
            remedy = "a timeline that reaches until then"
    verdict = replace(verdict, status=_status_now(verdict, context.live, horizon))
    if verdict.status is Status.INCONCLUSIVE:
        verdict = replace(verdict, because=with_remedy(verdict.because, remedy))
    return verdict


def _status_now(verdict: Verdict, live: bool, horizon: float) -> Status:
    """The status; while a run is live, what later entries may still decide is pending."""
    if verdict.status is Status.PENDING:
        is_over = verdict.deadline is not None and horizon >= verdict.deadline + LAG_BOUND
        return Status.PENDING if live and not is_over else Status.INCONCLUSIVE
    if verdict.status is Status.INCONCLUSIVE and live and verdict.deadline is not None:
        return Status.PENDING if horizon < verdict.deadline + _LATE_SAMPLE_GRACE else Status.INCONCLUSIVE
    return verdict.status
