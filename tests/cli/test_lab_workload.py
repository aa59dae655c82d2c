"""When ``lab up --workload`` considers a Job started."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.cli.lab.workload import job_readiness

COMPLETE, FAILED = ([{"type": type_, "status": "True"}] for type_ in ("Complete", "Failed"))


@pytest.mark.parametrize(
    ("spec", "status", "answer"),
    [
        ({"parallelism": 2}, {}, (False, "0 of 2 pods have started")),
        ({"parallelism": 2}, {"ready": 1, "active": 2}, (False, "1 of 2 pods have started")),
        ({"parallelism": 2}, {"ready": 2}, (True, "2 of 2 pods have started")),
        ({"parallelism": 2, "completions": 1}, {"ready": 1}, (True, "1 of 1 pods have started")),
        ({"parallelism": 2, "completions": 9}, {"ready": 1, "succeeded": 1}, (True, "2 of 2 pods have started")),
        ({"parallelism": 2}, {"succeeded": 1, "conditions": COMPLETE}, (True, "")),
        ({"parallelism": 2, "suspend": True}, {}, (True, "")),
        ({"parallelism": 0}, {}, (True, "0 of 0 pods have started")),
        ({"parallelism": 2}, {"conditions": FAILED}, (False, "failed")),
    ],
)
def test_readiness_of_a_job(spec: dict[str, Any], status: dict[str, Any], answer: tuple[bool, str]) -> None:
    assert job_readiness({"spec": spec, "status": status}) == answer
