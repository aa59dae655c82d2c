"""Whatever a secret is and however somebody writes it, it does not leave this process."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.model import secrecy
from chaos.model.secrecy import HIDDEN, hide, masked, masked_bytes, masked_json

LETTERS = st.characters(exclude_categories=["Cs"])
SECRETS = st.text(LETTERS, min_size=6, max_size=40).filter(lambda text: len(text.strip()) >= 6)
WAYS: list[Callable[[str], str]] = [
    str,
    html.escape,
    lambda text: json.dumps(text)[1:-1],
    lambda text: urllib.parse.quote(text, safe=""),
    lambda text: base64.b64encode(text.encode()).decode(),
]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrecy, "_known", set())
    monkeypatch.setattr(secrecy, "_pattern", None)


@given(secret=SECRETS, way=st.sampled_from(WAYS), around=st.text(max_size=20))
def test_no_text_says_it(secret: str, way: Callable[[str], str], around: str) -> None:
    hide(secret)
    told = masked(f"{around}{way(secret.strip())}{around}")
    assert HIDDEN in told
    if secret.strip() not in around + HIDDEN + around:
        assert way(secret.strip()) not in told


@given(
    secret=SECRETS,
    document=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    ),
)
def test_no_document_says_it_and_all_stay_documents(secret: str, document: Any) -> None:
    hide(secret)
    said = {"before": document, secret: f"no {secret.strip()} please", "list": [secret, document]}
    found = json.loads(masked_json(json.dumps(said).encode()))
    assert secret.strip() not in [*found, found["before"] if isinstance(found["before"], str) else ""]
    assert HIDDEN in json.dumps(found["list"][0])


def test_what_has_no_secret_is_left_as_it_is() -> None:
    hide("hunter2-secret")
    data = b'{"a":1.50,"b":"x"}\n'
    assert masked_json(data) is data
    assert masked("nothing here") == "nothing here"


def test_one_that_looks_like_syntax_breaks_no_document() -> None:
    hide("is true")
    hide('a":"bcd')
    assert json.loads(masked_json(b'{"x": true, "y": "is true", "a":"bcd"}')) == {"x": True, "y": HIDDEN, "a": "bcd"}


@pytest.mark.parametrize("short", ["", "a", "abc x", "  x  "])
def test_short_ones_are_parts_of_many_words(short: str) -> None:
    hide(short)
    assert masked("abc x") == "abc x"


def test_a_longer_one_that_holds_another_is_masked_whole() -> None:
    hide("passwd")
    hide("passwd-of-ann")
    assert masked("passwd-of-ann passwd") == f"{HIDDEN} {HIDDEN}"


def test_bytes_that_are_no_text_stay_what_they_are() -> None:
    hide("hunter2-secret")
    assert masked_bytes(b"\xff hunter2-secret \xfe") == b"\xff *** \xfe"


def test_what_is_no_json_is_masked_as_text() -> None:
    hide("hunter2-secret")
    assert masked_json(b'{"half": "hunter2-secret') == b'{"half": "***'


@pytest.mark.parametrize("odd", ["\ud83d\ude00-secret", "\udcff-secret"])
def test_halves_of_characters_are_hidden_too(odd: str) -> None:
    hide(odd)
    assert masked(f"x {odd} y") == f"x {HIDDEN} y"
