"""Signatures of replicas: of this cluster, this run and these entries, or none."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chaos.cluster.replica import Authenticity, PendingRun, RunIdentity, Signer, decode_replica, encode_replica
from chaos.core.action import FactCheck, Undo
from chaos.core.store.journal_format import PendingUndo

NAME = "nodefall-run-r-1"
IDENTITY = RunIdentity("r-1", "e", 1.0, "ann", ("n1",))
ENTRY = PendingUndo(
    1,
    "stop",
    "kubelet-stop",
    "n1",
    Undo(proof=(FactCheck("node-ready", True),)),
    2.0,
    state={"unit": "kubelet.service"},
)
SIGNER = Signer("uid-1", b"0123456789abcdef")


def replica(data: dict[str, Any], name: str = NAME) -> PendingRun:
    return decode_replica({"metadata": {"name": name, "resourceVersion": "7"}, "data": data})


def signed() -> dict[str, str]:
    return dict(SIGNER.sign(NAME, encode_replica(IDENTITY, [ENTRY])))


def test_it_names_no_command() -> None:
    found = replica(signed())
    (entry,) = found.entries
    assert (entry.step, entry.action, entry.node, entry.state) == ("stop", "kubelet-stop", "n1", ENTRY.state)
    assert (found.identity.nodes, found.version) == (("n1",), "7")
    assert "argv" not in json.dumps(signed())


def test_commands_that_somebody_added_are_dropped() -> None:
    data = signed()
    entries = json.loads(data["entries.json"])
    entries[0] |= {"commands": ["rm -rf /"], "undo": {"steps": [{"command": {"type": "host", "argv": ["rm"]}}]}}
    (entry,) = replica(data | {"entries.json": json.dumps(entries)}).entries
    assert entry.commands == ()


TAMPERED: list[tuple[str, Signer, str, dict[str, str], Authenticity]] = [
    ("unchanged", SIGNER, NAME, {}, Authenticity.SIGNED),
    ("no key here", Signer("uid-1"), NAME, {}, Authenticity.UNVERIFIED),
    ("another key", Signer("uid-1", b"fedcba9876543210"), NAME, {}, Authenticity.FORGED),
    ("another cluster", Signer("uid-2", SIGNER.key), NAME, {}, Authenticity.FORGED),
    ("other entries", SIGNER, NAME, {"entries.json": "[]"}, Authenticity.FORGED),
    ("another identity", SIGNER, NAME, {"run.json": '{"run":"r-1","experiment":"f","started":1.0,"format":2}'},
     Authenticity.FORGED),
    ("no signature", SIGNER, NAME, {"signature": ""}, Authenticity.FORGED),
    ("not ASCII", SIGNER, NAME, {"signature": "hmac-sha256:é"}, Authenticity.FORGED),
]  # fmt: skip


@pytest.mark.parametrize(("_what", "signer", "name", "change", "expected"), TAMPERED)
def test_authenticity(_what: str, signer: Signer, name: str, change: dict[str, str], expected: Authenticity) -> None:
    assert signer.verify(replica(signed() | change, name)) is expected


def test_the_journal_of_another_run_is_not_this_one_s() -> None:
    """Put under this run's name it is unreadable, or, with the name changed inside, forged."""
    assert replica(signed(), "nodefall-run-r-2").error
    data = signed()
    renamed = data | {"run.json": data["run.json"].replace("r-1", "r-2")}
    assert SIGNER.verify(replica(renamed, "nodefall-run-r-2")) is Authenticity.FORGED


def test_text_cannot_move_between_the_signed_parts() -> None:
    data = {"run.json": "ab", "entries.json": "cd"}
    moved = {"run.json": "abc", "entries.json": "d"}
    assert SIGNER.sign(NAME, data)["signature"] != SIGNER.sign(NAME, moved)["signature"]


def test_a_later_format_is_not_read() -> None:
    data = signed()
    found = replica(data | {"run.json": data["run.json"].replace('"format":2', '"format":3')})
    assert (found.error, found.has_pending) == ("a newer nodefall wrote it (format 3)", True)


@given(st.dictionaries(st.sampled_from(["run.json", "entries.json", "signature", "pending.json"]), st.text()))
def test_any_content_is_read_as_unreadable_or_empty(data: dict[str, str]) -> None:
    found = replica(data)
    assert found.error
    assert found.has_pending
    assert SIGNER.verify(found) is Authenticity.FORGED


@pytest.mark.parametrize("key", ["run.json", "entries.json"])
def test_content_that_is_nested_too_deep_is_unreadable(key: str) -> None:
    """It would otherwise end every run, plan and undo on this cluster."""
    deep = "[" * 50_000 + "]" * 50_000
    entry = f'[{{"id":1,"step":"s","action":"a","node":"n","t":1,"state":{{"x":{deep}}}}}]'
    value = entry if key == "entries.json" else f'{{"x":{deep}}}'
    assert "recursion" in replica(signed() | {key: value}).error


@pytest.mark.parametrize("started", [-1.0, 1e300])
def test_a_start_that_is_no_time_is_an_error(started: float) -> None:
    """It becomes the name of a directory."""
    data = encode_replica(structs.replace(IDENTITY, started=started), [ENTRY])
    assert "which is not a valid time" in replica(data).error


@pytest.mark.parametrize("t", ["1e300", "-1e15", "9" * 400])
def test_an_operation_at_no_time_is_unreadable(t: str) -> None:
    """Commands show its date."""
    data = signed()
    changed = re.sub(r'"t":[0-9.e+]+', f'"t":{t}', data["entries.json"])
    assert changed != data["entries.json"]
    found = replica(data | {"entries.json": changed})
    assert found.error
    assert found.has_pending
