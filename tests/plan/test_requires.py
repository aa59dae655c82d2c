"""Requirements of an experiment."""

from __future__ import annotations

import pytest

from chaos.model.errors import Refused
from chaos.model.requirement import parse_requirement
from chaos.plan.requires import check

HELD = [(">0", 30.0), (">= 30s", 30.0), ("<1m", 30.0), ("30s", 30.0), ("=40", 40.0), ("!=0s", 1.0), ("<=40", 40.0)]
NOT_HELD: list[tuple[str, float | None, str]] = [
    (">0", 0.0, "it is 0s"),
    (">0", None, "does not tell"),
    (">= 31s", 30.0, "it is 30s"),
    ("<30s", 30.0, "it is 30s"),
]


@pytest.mark.parametrize(("text", "value"), HELD)
def test_held(text: str, value: float | None) -> None:
    check({"kubelet": {"x": text}}, "n1", {"kubelet": {"x": value}})


@pytest.mark.parametrize(("text", "value", "why"), NOT_HELD)
def test_not_held(text: str, value: float | None, why: str) -> None:
    with pytest.raises(Refused, match="n1") as refused:
        check({"kubelet": {"x": text}}, "n1", {"kubelet": {"x": value}})
    assert why in refused.value.message


@pytest.mark.parametrize("text", ["", "> ", "about 3", ">>3", "3 s"])
def test_not_a_requirement(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_requirement(text)
