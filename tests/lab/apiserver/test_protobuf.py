"""Protobuf bodies, encoded by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.http.errors import ApiError
from chaos.lab.http.protobuf import decode


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


def test_a_job() -> None:
    """Messages that JSON has within the outer one, quantities, and what Go encodes of empty values."""
    key = part(1, part(1, "keys")) + part(2, "BMC_1")
    env = part(1, "BMC_1") + part(3, part(4, key))
    memory = part(1, "memory") + part(2, part(1, "512Mi"))
    mount = part(1, "tmp") + part(2, 0) + part(3, "/tmp")
    security = part(6, 1) + part(7, 0)
    resources = part(8, part(2, memory))
    container = part(1, "c") + part(7, env) + resources + part(9, mount) + part(15, security) + part(16, 0)
    empty, claim = (
        part(1, "tmp") + part(2, part(2, b"")),
        part(1, "r") + part(2, part(10, part(1, "reports") + part(2, 0))),
    )
    sized = part(1, "s") + part(2, part(2, part(1, "") + part(2, part(1, "1Gi"))))
    secret = part(1, part(1, "keys")) + part(2, part(1, "id") + part(2, "chaos") + part(3, 0o400))
    projected = part(1, "p") + part(2, part(26, part(1, part(1, secret)) + part(2, 0o440)))
    pod = b"".join(part(1, volume) for volume in (empty, claim, sized, projected))
    pod += part(2, container) + part(4, 600) + part(11, 0) + part(21, 0)
    rule = part(1, "FailJob") + part(2, part(1, "c") + part(2, "In") + part(3, 1) + part(3, 64))
    owner = part(13, part(1, "CronJob") + part(3, "days") + part(4, "u") + part(5, "batch/v1") + part(6, 1))
    spec = part(6, part(1, b"") + part(2, pod)) + part(7, 6) + part(11, part(1, rule))
    job = decode(wrapped("Job", part(1, part(1, "days-1") + owner) + part(2, spec) + part(3, part(4, 0))))
    assert job["metadata"]["ownerReferences"] == [
        {"kind": "CronJob", "name": "days", "uid": "u", "apiVersion": "batch/v1", "controller": True}
    ]
    template = job["spec"].pop("template")["spec"]
    assert job["spec"] == {
        "backoffLimit": 6,
        "podFailurePolicy": {
            "rules": [{"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1, 64]}}]
        },
    }
    assert template == {
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "r", "persistentVolumeClaim": {"claimName": "reports"}},
            {"name": "s", "emptyDir": {"sizeLimit": "1Gi"}},
            {
                "name": "p",
                "projected": {
                    "sources": [{"secret": {"name": "keys", "items": [{"key": "id", "path": "chaos", "mode": 0o400}]}}],
                    "defaultMode": 0o440,
                },
            },
        ],
        "containers": [
            {
                "name": "c",
                "env": [{"name": "BMC_1", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "BMC_1"}}}],
                "resources": {"requests": {"memory": "512Mi"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
            }
        ],
        "terminationGracePeriodSeconds": 600,
        "automountServiceAccountToken": False,
    }


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
