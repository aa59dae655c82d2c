"""Redaction: replaces the values of secrets in every output, however they are encoded.

Inventories hold references to secrets, and nodefall never writes a secret on purpose. Redaction is for other sources: a
BMC that repeats a password in its error, a traceback with a header, a program that prints its environment.

A secret is found if each of its characters is written as itself or as any escape for it: of JSON, URLs, HTML, shells,
Python, quoted-printable; also several times, as JSON within JSON. Base64, base32 and hexadecimal digits are found with
the secret at any place of what was encoded, as ``user:password``.
"""

# ruff: noqa: PLC0415 - every command imports this module, and few have secrets
from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

REDACTED = "***"
MIN_LENGTH = 6  # characters: shorter texts occur in many words
_SHORTEST_NEEDLE, _LONGEST_NEEDLE = 4, 24  # characters
_WORD = re.compile(r"[A-Za-z0-9]+")
_SLASHES = r"\\{1,8}"  # of an escape; doubled by each string in which the string is
_NAMED = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\0": "0"}  # after a backslash
_QUOTES = "'\"\\"
_URL_SAFE = {"+": "|-", "/": "|_"}  # the other alphabet of base64
_HEXADECIMAL = (("%", ""), ("=", ""), (r"\x", ""), (r"\u00", ""), (r"\U000000", ""), ("&#x", ";"), ("&#X", ";"))
# Bytes from those that objects of Kubernetes have least to those that they have most; others are rarer still.
_RARITY = b"`~^|$%#!?;&<>*+='@()_QXJqjKYUGHBVWzxvOLZEFDITPMRNASCkwygbhupmdlfciosnrtae-./:0123456789{}[],\""


class _Form(NamedTuple):
    """One way to write a secret. ``needles``: of which a text that has it has one; none: then it is searched."""

    needles: tuple[str, ...]
    pattern: str  # compiled when it is needed, as few secrets are ever written


class Known(NamedTuple):
    """The forms of each secret, the longest secret first; and the same for bytes.

    ``needles`` have their rarest byte, and the pattern of their form; ``without_needle``: the patterns of the others.
    """

    forms: dict[str, tuple[_Form, ...]] = {}
    needles: tuple[tuple[int, bytes, str], ...] = ()
    without_needle: tuple[str, ...] = ()


_known = Known()


def register_secret(secret: str) -> None:
    """Redact ``secret`` from now on in all its encodings. Thread-safe."""
    global _known  # noqa: PLW0603 - every output of the process is redacted
    text = secret.strip()
    if len(text) < MIN_LENGTH or text in _known.forms:
        return
    forms = {**_known.forms, text: tuple(_forms_of(text))}
    forms = {each: forms[each] for each in sorted(forms, key=len, reverse=True)}
    every = [form for of_secret in forms.values() for form in of_secret]
    needles = ((needle.encode(), form.pattern) for form in every for needle in form.needles)
    by_rarest = tuple((min(needle, key=_RARITY.find), needle, pattern) for needle, pattern in needles)
    _known = Known(forms, by_rarest, tuple(form.pattern for form in every if not form.needles))


def redact(text: str) -> str:
    """``text`` without secrets."""
    for forms in _known.forms.values():
        for form in forms:
            if not form.needles or any(needle in text for needle in form.needles):
                text = _compile(form.pattern).sub(REDACTED, text)
    return text


def redact_bytes(data: bytes) -> bytes:
    """UTF-8 text without secrets; other bytes are unchanged."""
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if _known.forms else data


def contains_secret(data: bytes) -> bool:
    """Whether UTF-8 text has a secret in it."""
    # A loop, as it is run for each event of a watch; one byte is found much faster than a needle.
    found = [pattern for rarest, needle, pattern in _known.needles if rarest in data and needle in data]
    if not found and not _known.without_needle:
        return False
    text = data.decode("utf-8", "surrogateescape")
    return any(_compile(pattern).search(text) for pattern in (*found, *_known.without_needle))


def redact_json(data: bytes) -> bytes:
    """A JSON document without secrets in its strings; anything else is redacted as text."""
    if not contains_secret(data):
        return data
    import json

    import msgspec

    text = data.decode("utf-8", "replace")
    try:
        return msgspec.json.encode(_redact_value(json.loads(text))) + (b"\n" if data.endswith(b"\n") else b"")
    except ValueError:
        return redact(text).encode()


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(key): _redact_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_redact_value(item) for item in value]
    return REDACTED if redact(str(value)) == REDACTED else value  # a number


def _forms_of(text: str) -> Iterator[_Form]:
    from base64 import b32encode, b64encode

    raw = _utf8(text)
    yield _form(text)
    for data in (raw, text.encode("utf-16-le", "surrogatepass")):  # of PowerShell's -EncodedCommand
        yield from (_form(core, is_encoded=True) for core in _cores(data, 3, 4, b64encode))
    yield from (_form(core, is_encoded=True) for core in _cores(raw, 5, 8, b32encode))
    yield _Form((raw.hex(), raw.hex().upper()), f"(?i:{raw.hex()})")


def _cores(data: bytes, size: int, letters: int, encode: Any) -> Iterator[str]:
    """What each encoded text has that contains ``data``, by where it begins in a block of ``size`` bytes."""
    bits = 8 * size // letters
    for offset in range(size):
        begin, end = -(-8 * offset // bits), 8 * (offset + len(data)) // bits
        yield encode(bytes(offset) + data).decode()[begin:end]


def _form(text: str, *, is_encoded: bool = False) -> _Form:
    """``text``, each of whose characters may be escaped; of base64 and base32 with the rest of the word."""
    groups = groupby(text, key=lambda character: _QUOTES if character in _QUOTES else character)
    pattern = "".join(_run(each, len(list(group)), is_encoded=is_encoded) for each, group in groups)
    if is_encoded:
        around = "[A-Za-z0-9+/_-]{0,3}"
        pattern = f"{around}{pattern}{around}(?:=|%3[dD]){{0,2}}"
    word = max(_WORD.findall(text), key=len, default="")[:_LONGEST_NEEDLE]
    if len(word) < _SHORTEST_NEEDLE:
        return _Form((), pattern)
    escaped = () if is_encoded else _escaped(word[:_SHORTEST_NEEDLE])
    return _Form(tuple(dict.fromkeys([word, *escaped])), pattern)


def _escaped(word: str) -> Iterator[str]:
    """A word as what escapes letters and digits, too, writes it."""
    for digits in ("02x", "02X"):
        for begin, end in _HEXADECIMAL:
            yield "".join(f"{begin}{ord(letter):{digits}}{end}" for letter in word)
    yield "".join(f"&#{ord(letter)};" for letter in word)
    yield "".join(f"\\{ord(letter):03o}" for letter in word)


def _run(character: str, count: int, *, is_encoded: bool) -> str:
    """The pattern of a character that is written ``count`` times; a sign may be doubled, as in a format.

    Of _QUOTES, that many quotes and backslashes in any order: shells and languages have too many ways to quote them.
    """
    if character == _QUOTES:
        escapes = "|".join(escape for quote in _QUOTES for escape in _escapes(quote)[:-1])
        return f"(?:{escapes}|[{re.escape(_QUOTES)}]){{{count},{25 * count}}}"
    if is_encoded and character.isalnum():
        return character * count
    one = f"(?:{'|'.join(_escapes(character))}{_URL_SAFE.get(character, '') if is_encoded else ''})"
    if character.isascii() and character.isalnum():
        return one * count
    return f"{one}{{{count},{2 * count}}}"


@cache
def _escapes(character: str) -> list[str]:
    """The patterns of one character, escaped and, the last one, as itself."""
    code, raw = ord(character), _utf8(character)
    units = character.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2] for at in range(0, len(units), 2)]
    prefix = "" if character.isascii() and character.isalnum() else r"\\{0,8}"
    html = f"#0*{code};|#[xX]0*(?i:{code:x});{_html_names(character)}"
    return [
        prefix + "".join(f"%(?:25)*(?i:{byte:02x})" for byte in raw),
        "".join(f"=(?i:{byte:02x})" for byte in raw),
        f"{prefix}&(?:amp;)*(?:{html})",
        *([r"\+"] if character == " " else []),  # in the query of a URL
        *(_SLASHES + escape for escape in (
            f"U(?i:{code:08x})", *([f"x(?i:{code:02x})"] if code < 0x100 else []), *_NAMED.get(character, ()),
        )),
        "".join(f"{_SLASHES}u(?i:{pair.hex()})" for pair in pairs),
        "".join(f"{_SLASHES}x(?i:{byte:02x})" for byte in raw),
        "".join(f"{_SLASHES}{byte:03o}" for byte in raw),
        prefix + re.escape(character),
    ]  # fmt: skip


def _utf8(text: str) -> bytes:
    """Environment variables may hold any bytes; JSON can escape lone surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _html_names(character: str) -> str:
    from html.entities import html5

    return "".join(f"|{name}" for name, value in html5.items() if value == character and name.endswith(";"))
