"""Redaction: values of secrets are replaced wherever text leaves the process.

Inventories hold references to secrets, and nodefall never writes a secret on purpose. Redaction is for other sources: a
BMC that repeats a password in its error, a traceback with a header.
"""

# ruff: noqa: PLC0415 - every command imports this module, and few have secrets
from __future__ import annotations

import re
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
