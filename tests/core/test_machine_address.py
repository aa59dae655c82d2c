"""Whether an address is a former one of a machine."""

from __future__ import annotations

import pytest

from chaos.core.power_identity import moved_to

BRIDGE = ("172.18.0.5/16", "fc00:f853::5/64")


@pytest.mark.parametrize(
    ("what", "address", "interfaces", "new"),
    [
        ("the same", "172.18.0.5", BRIDGE, ""),
        ("a former one", "172.18.0.3", BRIDGE, "172.18.0.5"),
        ("a former one of IPv6", "fc00:f853::3", BRIDGE, "fc00:f853::5"),
        ("another spelling", "fc00:f853:0::0005", BRIDGE, ""),
        ("of a tunnel", "100.64.0.9", BRIDGE, ""),
        ("a forwarded port", "127.0.0.1", BRIDGE, ""),
        ("a name", "kind-worker", BRIDGE, ""),
        ("none in the inventory", "", BRIDGE, ""),
        ("a machine that is off", "172.18.0.3", (), ""),
        ("of the second network", "10.1.0.2", ("172.18.0.5/16", "10.1.0.7/24"), "10.1.0.7"),
        ("a network that is not known", "172.18.0.3", ("172.18.0.5",), ""),
    ],
)
def test_where_a_machine_is_now(what: str, address: str, interfaces: tuple[str, ...], new: str) -> None:
    assert moved_to(address, interfaces) == new, what
