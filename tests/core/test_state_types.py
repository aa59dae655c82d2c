"""Names that a state may have: those that facts report, and no others."""

from __future__ import annotations

import msgspec
import pytest

from chaos.core.node_mark import NodeUnit
from chaos.faults.readings.units import KUBELET_UNITS, RUNTIME_UNITS


@pytest.mark.parametrize("unit", [*KUBELET_UNITS, *RUNTIME_UNITS])
def test_every_unit_of_a_kubelet_or_a_runtime_may_be_in_a_state(unit: str) -> None:
    assert msgspec.convert(unit, NodeUnit) == unit


@pytest.mark.parametrize(
    "unit", ["", "kubelet", "kubelet.service\n", "-kubelet.service", "xkubelet.service", "systemd-reboot.service"]
)
def test_no_other_unit_may_be_in_a_state(unit: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(unit, NodeUnit)
