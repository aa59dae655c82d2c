"""Protobuf bodies, encoded by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.protobuf import decode


def varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
    return data + bytes([value])


def part(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value % (1 << 64))
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def wrapped(kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + part(1, part(1, "v1") + part(2, kind)) + part(2, raw) + part(3, "") + part(4, "")


def test_an_eviction() -> None:
    options = part(1, -3) + part(2, part(1, "u")) + part(3, 1) + part(4, "Orphan") + part(5, "All") + part(5, "x")
    metadata = part(1, "p" * 200) + part(2, "") + part(3, "default") + part(8, b"")  # 8: a time, not set
    assert decode(wrapped("Eviction", part(1, metadata) + part(2, options))) == {
        "apiVersion": "v1",
        "kind": "Eviction",
        "metadata": {"name": "p" * 200, "namespace": "default"},
        "deleteOptions": {
            "gracePeriodSeconds": -3,
            "preconditions": {"uid": "u"},
            "orphanDependents": True,
            "propagationPolicy": "Orphan",
            "dryRun": ["All", "x"],
        },
    }


def test_maps_and_empty_messages() -> None:
    metadata = part(1, "m") + part(11, part(1, "a") + part(2, "b")) + part(11, part(1, "c"))
    raw = part(1, metadata) + part(2, part(1, "k") + part(2, "v")) + part(9, part(3, ""))
    config_map = decode(wrapped("ConfigMap", raw))
    assert config_map["metadata"] == {"name": "m", "labels": {"a": "b", "c": ""}}
    assert config_map["data"] == {"k": "v"}


def test_fields_of_fixed_size_are_skipped() -> None:
    raw = varint(90 << 3 | 1) + bytes(8) + varint(91 << 3 | 5) + bytes(4) + part(1, 7)
    assert decode(wrapped("DeleteOptions", raw))["gracePeriodSeconds"] == 7


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{}", 400),
        (b"k8s\x00", 400),
        (wrapped("Pod", b""), 415),
        (wrapped("Namespace", part(1, part(1, "n")) + part(2, part(1, "x"))), 415),  # an unknown field
        (wrapped("Eviction", part(1, b"\x0a\x05ab")), 400),  # truncated
        (wrapped("DeleteOptions", b"\x08" + b"\xff" * 12), 400),  # a number without end
        (wrapped("DeleteOptions", b"\x0b"), 400),  # a group
        (wrapped("DeleteOptions", part(1, "text")), 400),
        (wrapped("DeleteOptions", part(4, 5)), 400),
        (wrapped("DeleteOptions", part(4, b"\xff")), 400),
    ],
)
def test_bad_bodies(data: bytes, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        decode(data)
    assert caught.value.code == code


@given(st.binary())
def test_no_bytes_break_the_decoder(data: bytes) -> None:
    try:
        decode(wrapped("Eviction", data))
    except ApiError as error:
        assert error.code in (400, 415)  # noqa: PT017 - both ends are fine
