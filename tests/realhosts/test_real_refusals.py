"""What would hit everybody on a shared kernel is refused on containers, before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import Refused
from tests.kit.drive import drive
from tests.kit.machines import RealHost

FORBIDDEN = [
    ("kernel-crash", {}),
    ("disk-pressure", {}),
    ("memory-pressure", {}),
    ("pid-pressure", {}),
    ("clock-skew", {}),
    ("disk-read-only", {"path": "/etc/hosts"}),
    ("disk-slow", {}),
    ("power-cut", {"how": "sysrq"}),
]


@pytest.mark.parametrize(("action", "given"), FORBIDDEN)
def test_a_shared_kernel_is_left_alone(
    three: list[RealHost], tmp_path: Path, action: str, given: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match="is a container"):
        drive(three[0], action, given, tmp_path)
    assert "nodefall" not in three[0].run("systemctl list-units --all --plain --no-legend")
