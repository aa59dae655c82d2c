"""Redaction of any secret in any encoding.

Escapes of invisible characters.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import time
import unicodedata
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core import redaction
from chaos.core.redaction import REDACTED, contains_secret, redact, redact_bytes, redact_json, register_secret
from chaos.core.text import escape_control

LETTERS = st.characters(exclude_categories=["Cs"])
SECRETS = st.text(LETTERS, min_size=6, max_size=40).filter(lambda text: len(text.strip()) >= 6)
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60)


def per_character(form: str) -> Callable[[str], str]:
    return lambda text: "".join(form.format(ord(letter)) for letter in text)


def base64_of(before: str, after: str, encode: Callable[[bytes], bytes] = base64.b64encode) -> Callable[[str], str]:
    return lambda text: encode(f"{before}{text}{after}".encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text))[1:-1],
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text)))[1:-1],
    "JSON of Go": lambda text: (
        json.dumps(text)[1:-1].replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003E")
    ),
    "JSON of PHP": lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
    "JSON, all escaped": per_character(r"\u{:04x}"),
    "HTML": html.escape,
    "HTML, named quotes": lambda text: html.escape(text, quote=False).replace("'", "&apos;").replace('"', "&quot;"),
    "HTML of HTML": lambda text: html.escape(html.escape(text)),
    "HTML of JSON": lambda text: html.escape(json.dumps(text)[1:-1]),
    "HTML, decimal": per_character("&#{};"),
    "HTML, hexadecimal": per_character("&#x{:X};"),
    "URL": lambda text: urllib.parse.quote(text, safe=""),
    "URL, path": urllib.parse.quote,
    "URL, lower case": lambda text: re.sub("%..", lambda found: found[0].lower(), urllib.parse.quote(text, safe="")),
    "URL, form": urllib.parse.quote_plus,
    "URL of URL": lambda text: urllib.parse.quote(urllib.parse.quote(text, safe=""), safe=""),
    "URL, all escaped": per_character("%{:02x}"),
    "shell": lambda text: shlex.quote(text)[1:-1] if shlex.quote(text) != text else text,
    "shell, command in a command": lambda text: shlex.quote(shlex.quote(text)),
    "shell, double quotes": lambda text: re.sub(r'([$`"\\])', r"\\\1", text),
    "shell, printf %q": lambda text: re.sub(r"([^A-Za-z0-9_./:=@%^+,-])", r"\\\1", text),
    "PowerShell": lambda text: text.replace("'", "''"),
    "CSV": lambda text: text.replace('"', '""'),
    "repr": lambda text: repr(text)[1:-1],
    "repr of bytes": lambda text: repr(text.encode())[2:-1],
    "repr of repr": lambda text: repr(repr(text)),
    "Python, all escaped": per_character(r"\x{:02x}"),
    "octal": per_character(r"\{:03o}"),
    "quoted-printable": per_character("={:02X}"),
    "base64": base64_of("", ""),
    "base64, unpadded": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 of user:password": base64_of("user:", ""),
    "base64 in a text": base64_of("ab", "cde"),
    "base64, safe in URLs": base64_of("u:", "", base64.urlsafe_b64encode),
    "base64 in a URL": lambda text: urllib.parse.quote(base64.b64encode(text.encode()), safe=""),
    "base64 of UTF-16": lambda text: base64.b64encode(f"'{text}'".encode("utf-16-le")).decode(),
    "base32": base64_of("x", "", base64.b32encode),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal, upper case": lambda text: text.encode().hex().upper(),
}
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def forget() -> None:
    """Each example has its own secrets."""
    redaction._known = redaction.Known()


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", redaction.Known())


@given(secret=SECRETS | PRINTABLE, around=st.text(max_size=20))
def test_a_secret_is_redacted_in_text(secret: str, around: str) -> None:
    """Of any characters, in what the encodings of the standard library make of it."""
    forget()
    register_secret(secret)
    for name in ("plain", "HTML", "JSON", "URL", "base64", "repr"):
        written = ENCODINGS[name](secret.strip())
        redacted = redact(f"{around}{written}{around}")
        assert REDACTED in redacted, name
        if written not in around + REDACTED + around:
            assert written not in redacted, name


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(secret=PRINTABLE, before=st.text(LETTERS, max_size=9), after=st.text(LETTERS, max_size=9))
def test_a_secret_is_redacted_in_every_encoding(encoding: str, secret: str, before: str, after: str) -> None:
    forget()
    register_secret(secret)
    written = ENCODINGS[encoding](secret)
    text = f"{before} {written} {after}"
    assert REDACTED in redact(text)
    assert contains_secret(text.encode())
    if written not in f"{before} {REDACTED} {after}":
        for found in (redact(text), redact_bytes(text.encode()).decode(), redact_json(text.encode()).decode()):
            assert written not in found
            assert secret not in found or secret in f"{before} {REDACTED} {after}"


@pytest.mark.parametrize("secret", ["hunter2-%2f/+&'x", "p@ss\\w0rd 'quoted' \"both\"", "ünïcode-😀-secret"])
def test_signs_that_are_encoded_differently_in_one_text(secret: str) -> None:
    """As a program does that escapes only some of them."""
    register_secret(secret)
    for name, encode in ENCODINGS.items():
        if secret.isascii() or name in ("JSON", "URL", "repr", "base64", "repr of bytes"):
            redacted = redact(f"<{encode(secret)}>")
            assert REDACTED in redacted, name
            assert not re.search("[A-Za-z0-9]{5}", redacted), name


@pytest.mark.parametrize("secret", ["-" * 60, "'" * 60, "\\" * 9 + "x", "-/" * 30, "%25" * 9, " + + + +a"])
def test_no_text_makes_the_search_long(secret: str) -> None:
    register_secret(secret)
    begin = time.process_time()
    for sign in (*set(secret), secret[:-1], "\\'", "&amp;", "%25"):
        redact(f"{sign * (5_000 // len(sign))}!")
    assert time.process_time() - begin < 20


@given(
    secret=SECRETS,
    document=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    ),
)
def test_a_secret_is_redacted_in_json_which_stays_valid(secret: str, document: Any) -> None:
    forget()
    register_secret(secret)
    original = {"before": document, secret: f"no {secret.strip()} please", "list": [secret, document]}
    found = json.loads(redact_json(json.dumps(original).encode()))
    assert secret.strip() not in [*found, found["before"] if isinstance(found["before"], str) else ""]
    assert REDACTED in json.dumps(found["list"][0])


@given(secrets=st.lists(SECRETS, min_size=1, max_size=4), data=st.data())
def test_secrets_are_found_in_bytes_as_in_text(secrets: list[str], data: st.DataObject) -> None:
    forget()
    for secret in secrets:
        register_secret(secret)
    parts = [secret[: data.draw(st.integers(0, len(secret)))] for secret in data.draw(st.permutations(secrets))]
    text = data.draw(st.text(LETTERS, max_size=5)).join(parts)
    assert contains_secret(text.encode()) == (redact(text) != text)


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
