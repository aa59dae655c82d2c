"""Helper pods are removed when a connection is closed; a failure of that hides no other error."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.app.wiring.connect import _remove
from chaos.core.errors import Unreachable


class _GoneClock:
    def resume(self) -> None:
        raise Unreachable("time source: connection refused")


@pytest.mark.parametrize(("namespaces", "logged"), [([], False), (["nodefall"], True)])
def test_a_clock_that_is_gone_is_logged(
    caplog: pytest.LogCaptureFixture, namespaces: list[str], *, logged: bool
) -> None:
    helpers: Any = SimpleNamespace(namespaces=namespaces, remove=list)
    clock: Any = _GoneClock()
    with caplog.at_level(logging.WARNING):
        _remove(helpers, clock)
    assert ("helper pods may be left in namespace nodefall: time source" in caplog.text) is logged


def test_what_is_left_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    helpers: Any = SimpleNamespace(namespaces=["nodefall"], remove=lambda: ["pod nodefall/x is left"])
    clock: Any = SimpleNamespace(resume=lambda: None)
    with caplog.at_level(logging.WARNING):
        _remove(helpers, clock)
    assert "pod nodefall/x is left" in caplog.text
