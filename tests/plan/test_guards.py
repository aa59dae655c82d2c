from __future__ import annotations

import pytest

from chaos.model.errors import Refused
from chaos.plan.guards import never_ourselves, no_timer_left

OWN = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"


@pytest.mark.parametrize(("own", "host"), [(OWN, OTHER), ("", OTHER), ("uninitialized", OTHER), (OWN + "\n", OTHER)])
def test_another_machine(own: str, host: str) -> None:
    never_ourselves(own, host, "w1")


@pytest.mark.parametrize(
    ("own", "host", "said"),
    [
        (OWN, OWN, "runs on"),
        (OWN + "\n", OWN.upper(), "runs on"),
        (OWN, "01234567-89ab-cdef-0123-456789abcdef", "runs on"),
        (OWN, "", "no machine ID"),
        ("", "uninitialized\n", "no machine ID"),
    ],
)
def test_ourselves(own: str, host: str, said: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        never_ourselves(own, host, "w1")
    assert caught.value.hint


def test_a_timer_of_an_earlier_run_would_end_what_this_one_does() -> None:
    no_timer_left([], "w1")
    with pytest.raises(Refused, match=r"w1 still has nodefall-x-stop\.timer of an earlier run"):
        no_timer_left(["nodefall-x-stop.timer"], "w1")
