"""Requirements of experiments on facts."""

from __future__ import annotations

import pytest

from chaos.core.duration import parse_requirement


@pytest.mark.parametrize("text", ["", "> ", "about 3", ">>3", "3 s"])
def test_invalid_requirements(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_requirement(text)
