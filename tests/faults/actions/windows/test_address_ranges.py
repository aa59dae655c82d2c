"""Ranges of the Windows firewall: nothing that must stay reachable is blocked, and everything else is."""

from __future__ import annotations

import ipaddress
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.faults.actions.windows._ranges import (
    EVERYTHING,
    NEVER_BLOCKED,
    AddressRange,
    Network,
    blocked_ranges,
    split_list,
)


def networks(*texts: str) -> list[Network]:
    return [ipaddress.ip_network(text) for text in texts]


def contains(ranges: list[str], address: str) -> bool:
    """As the Windows firewall reads them: the first and the last address belong to a range."""
    wanted = ipaddress.ip_address(address)
    for text in ranges:
        first, _, last = text.partition("-")
        low, high = ipaddress.ip_address(first), ipaddress.ip_address(last or first)
        if low.version == wanted.version and int(low) <= int(wanted) <= int(high):
            return True
    return False


V4 = st.builds(
    lambda number, length: ipaddress.IPv4Network((number, length), strict=False),
    st.integers(0x0A000000, 0x0A0000FF),
    st.integers(24, 32),
)
V6 = st.builds(
    lambda number, length: ipaddress.IPv6Network((number, length), strict=False),
    st.integers(0, 255).map(lambda low: (0xFD << 120) + low),
    st.integers(120, 128),
)
NETWORKS = st.lists(V4 | V6, max_size=6)
ADDRESSES = [f"10.0.0.{low}" for low in range(256)] + [
    str(ipaddress.IPv6Address((0xFD << 120) + n)) for n in range(256)
]


@given(NETWORKS, NETWORKS)
def test_exactly_the_blocked_addresses_that_are_not_exempt(blocked: list[Network], exempt: list[Network]) -> None:
    ranges = blocked_ranges(blocked, exempt)
    for text in ADDRESSES:
        address = ipaddress.ip_address(text)
        is_wanted = any(address in network for network in blocked) and not any(address in network for network in exempt)
        assert contains(ranges, text) is is_wanted, text


@given(NETWORKS, NETWORKS)
def test_ranges_are_sorted_and_do_not_overlap(blocked: list[Network], exempt: list[Network]) -> None:
    bounds = []
    for text in blocked_ranges(blocked, exempt):
        first, _, last = text.partition("-")
        low, high = ipaddress.ip_address(first), ipaddress.ip_address(last or first)
        assert low.version == high.version
        assert int(low) < int(high) or not last
        bounds.append((low.version, int(low), int(high)))
    for (version, _, end), (next_version, begin, _) in pairwise(bounds):
        assert version < next_version or end < begin


ANY_V4 = st.integers(0, (1 << 32) - 1).map(ipaddress.IPv4Address)
ANY_V6 = st.integers(0, (1 << 128) - 1).map(ipaddress.IPv6Address)


@given(ANY_V4 | ANY_V6, st.lists(ANY_V4 | ANY_V6, max_size=4))
def test_everything_but_the_operators(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    operators: list[ipaddress.IPv4Address | ipaddress.IPv6Address],
) -> None:
    needed = networks(*NEVER_BLOCKED)
    exempt = [*networks(*map(str, operators)), *needed]
    ranges = blocked_ranges(networks(*EVERYTHING), exempt)
    assert not any(contains(ranges, str(operator)) for operator in operators)
    is_needed = any(address in network for network in needed)
    assert contains(ranges, str(address)) is (address not in operators and not is_needed)


@given(NETWORKS, NETWORKS)
def test_every_range_is_of_the_type_of_the_state(blocked: list[Network], exempt: list[Network]) -> None:
    ranges = blocked_ranges(blocked, exempt)
    assert msgspec.convert(ranges, list[AddressRange]) == ranges


@pytest.mark.parametrize("text", ["any", "10.0.0.1,10.0.0.2", "10.0.0.1 & calc", "10.0.0.1-", "-10.0.0.1", ""])
def test_a_state_has_nothing_but_ranges(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, AddressRange)


@given(st.lists(st.text("0123456789.", min_size=1, max_size=20), max_size=60), st.integers(20, 100))
def test_lists_are_short_and_complete(items: list[str], limit: int) -> None:
    lines = list(split_list(items, limit))
    assert all(len(line) <= limit for line in lines)
    assert [item for line in lines for item in line.split(",")] == items
