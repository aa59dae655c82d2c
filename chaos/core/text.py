"""Text for people: text from outside is escaped, and values of secrets are replaced.

Inventories hold references to secrets, and nodefall never writes a secret on purpose. Redaction is for other sources: a
BMC that repeats a password in its error, a traceback with a header.
"""

# ruff: noqa: PLC0415 - every command imports this module, and few have secrets
from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

REDACTED = "***"
MIN_LENGTH = 6  # characters: shorter texts occur in many words
_secrets: set[str] = set()
_pattern: re.Pattern[str] | None = None
# The rarest byte of each secret, and the secret.
_needles: tuple[tuple[int, bytes], ...] = ()
# Bytes from those that objects of Kubernetes have least to those that they have most; others are rarer still.
_RARITY = b"`~^|$%#!?;&<>*+='@()_QXJqjKYUGHBVWzxvOLZEFDITPMRNASCkwygbhupmdlfciosnrtae-./:0123456789{}[],\""


def register_secret(secret: str) -> None:
    """Redact ``secret`` from now on, also in its JSON, HTML, URL and base64 encodings. Thread-safe."""
    global _needles, _pattern  # noqa: PLW0603 - every output of the process is redacted
    text = secret.strip()
    if len(text) < MIN_LENGTH or text in _secrets:
        return
    _secrets.update(_encodings(text))
    longest_first = sorted(_secrets, key=len, reverse=True)
    _pattern = re.compile("|".join(re.escape(encoding) for encoding in longest_first))
    needles = (encoding.encode("utf-8", "surrogatepass") for encoding in longest_first)
    _needles = tuple((min(needle, key=_rarity), needle) for needle in needles)


def redact(text: str) -> str:
    """``text`` without secrets."""
    return _pattern.sub(REDACTED, text) if _pattern else text


def redact_bytes(data: bytes) -> bytes:
    """UTF-8 text without secrets; other bytes are unchanged."""
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if _pattern else data


def contains_secret(data: bytes) -> bool:
    """Whether UTF-8 text has a secret in it."""
    # A loop, as it is run for each event of a watch.
    for rarest, needle in _needles:  # noqa: SIM110
        if rarest in data and needle in data:  # one byte is found much faster
            return True
    return False


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
    return [_redact_value(item) for item in value] if isinstance(value, list) else value


def _rarity(byte: int) -> int:
    return _RARITY.find(byte)


def _encodings(text: str) -> set[str]:
    import html
    import json
    from base64 import b64encode
    from urllib.parse import quote

    try:
        raw = text.encode("utf-8", "surrogateescape")  # environment variables may hold any bytes
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogatepass")  # lone surrogates, as JSON can escape them
    return {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        html.escape(text),
        quote(raw, safe=""),
        b64encode(raw).decode(),
    }


# Cc: control; Cf: format, which includes bidirectional overrides; Cs: lone surrogates, which UTF-8 cannot hold;
# Co, Cn: private and unassigned, which includes U+FFFE and U+FFFF that XML 1.0 forbids; Zl, Zp: line ends to scripts.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MAX_LENGTH = 2000
_ASCII_SYMBOLS = str.maketrans({"✓": "+", "✗": "x", "…": "."})


def printable(text: str, limit: int = _MAX_LENGTH) -> str:
    """``text`` on one line, whitespace collapsed, invisible characters as escapes, at most ``limit`` characters.

    Secrets are redacted first, as the other changes would alter them.
    """
    escaped = _escape(" ".join(redact(text)[: 4 * limit].split()))
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + "…"


def escape_control(text: str) -> str:
    """``text`` without secrets; invisible characters, including line ends, as escapes."""
    return _escape(redact(text))


def _escape(text: str) -> str:
    return text if text.isprintable() else "".join(_escape_character(c) for c in text)


def escape_for_encoding(text: str, encoding: str) -> str:
    """``text`` with ASCII for nodefall's symbols, and escapes for other characters that ``encoding`` lacks."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII_SYMBOLS).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def on_node(what: str, node: str) -> str:
    """``power-off on worker-2``; ``what`` alone if there is no node."""
    return f"{what} on {node}" if node else what


def count_of(number: int, noun: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, its cells padded to the width of their columns. All rows have as many cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
