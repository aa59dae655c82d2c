"""Redaction of any secret in any encoding.

Escapes of invisible characters.
"""

from __future__ import annotations

import base64
import html
import json
import unicodedata
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core import text as redaction
from chaos.core.text import (
    REDACTED,
    contains_secret,
    escape_control,
    redact,
    redact_bytes,
    redact_json,
    register_secret,
)

LETTERS = st.characters(exclude_categories=["Cs"])
SECRETS = st.text(LETTERS, min_size=6, max_size=40).filter(lambda text: len(text.strip()) >= 6)
ENCODINGS: list[Callable[[str], str]] = [
    str,
    html.escape,
    lambda text: json.dumps(text)[1:-1],
    lambda text: urllib.parse.quote(text, safe=""),
    lambda text: base64.b64encode(text.encode()).decode(),
]
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_secrets", set())
    monkeypatch.setattr(redaction, "_pattern", None)
    monkeypatch.setattr(redaction, "_needles", ())


@given(secret=SECRETS, encode=st.sampled_from(ENCODINGS), around=st.text(max_size=20))
def test_a_secret_is_redacted_in_text(secret: str, encode: Callable[[str], str], around: str) -> None:
    register_secret(secret)
    redacted = redact(f"{around}{encode(secret.strip())}{around}")
    assert REDACTED in redacted
    if secret.strip() not in around + REDACTED + around:
        assert encode(secret.strip()) not in redacted


@given(
    secret=SECRETS,
    document=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    ),
)
def test_a_secret_is_redacted_in_json_which_stays_valid(secret: str, document: Any) -> None:
    register_secret(secret)
    original = {"before": document, secret: f"no {secret.strip()} please", "list": [secret, document]}
    found = json.loads(redact_json(json.dumps(original).encode()))
    assert secret.strip() not in [*found, found["before"] if isinstance(found["before"], str) else ""]
    assert REDACTED in json.dumps(found["list"][0])


@given(secrets=st.lists(SECRETS, min_size=1, max_size=4), data=st.data())
def test_secrets_are_found_in_bytes_as_in_text(secrets: list[str], data: st.DataObject) -> None:
    for secret in secrets:
        register_secret(secret)
    parts = [secret[: data.draw(st.integers(0, len(secret)))] for secret in data.draw(st.permutations(secrets))]
    text = data.draw(st.text(LETTERS, max_size=5)).join(parts)
    assert redaction._pattern is not None
    assert contains_secret(text.encode()) == bool(redaction._pattern.search(text))


def test_data_without_a_secret_is_unchanged() -> None:
    register_secret("hunter2-secret")
    data = b'{"a":1.50,"b":"x"}\n'
    assert redact_json(data) is data
    assert redact("nothing here") == "nothing here"


def test_a_secret_that_resembles_json_syntax_breaks_no_document() -> None:
    register_secret("is true")
    register_secret('a":"bcd')
    assert json.loads(redact_json(b'{"x": true, "y": "is true", "a":"bcd"}')) == {"x": True, "y": REDACTED, "a": "bcd"}


@pytest.mark.parametrize("short", ["", "a", "abc x", "  x  "])
def test_short_secrets_are_not_redacted(short: str) -> None:
    register_secret(short)
    assert redact("abc x") == "abc x"


def test_a_secret_that_contains_another_is_redacted_as_a_whole() -> None:
    register_secret("passwd")
    register_secret("passwd-of-ann")
    assert redact("passwd-of-ann passwd") == f"{REDACTED} {REDACTED}"


def test_bytes_that_are_not_utf8_are_unchanged() -> None:
    register_secret("hunter2-secret")
    assert redact_bytes(b"\xff hunter2-secret \xfe") == b"\xff *** \xfe"


def test_invalid_json_is_redacted_as_text() -> None:
    register_secret("hunter2-secret")
    assert redact_json(b'{"half": "hunter2-secret') == b'{"half": "***'


@pytest.mark.parametrize("odd", ["\ud83d\ude00-secret", "\udcff-secret"])
def test_lone_surrogates_are_redacted(odd: str) -> None:
    register_secret(odd)
    assert redact(f"x {odd} y") == f"x {REDACTED} y"


@given(st.text(st.characters()))  # surrogates included
def test_exactly_the_invisible_characters_are_escaped(text: str) -> None:
    escaped = escape_control(text)
    assert not {unicodedata.category(c) for c in escaped} & INVISIBLE
    visible = [c for c in text if unicodedata.category(c) not in INVISIBLE]
    assert len(visible) == len(text) or escaped != text
    if len(visible) == len(text):
        assert escaped == text
