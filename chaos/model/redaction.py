"""Redaction: values of secrets are replaced wherever text leaves the process.

Inventories hold references to secrets, and nodefall never writes a secret on purpose. Redaction is for other sources: a
BMC that repeats a password in its error, a traceback with a header.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import msgspec

REDACTED = "***"
MIN_LENGTH = 6  # characters: shorter texts occur in many words
_secrets: set[str] = set()
_pattern: re.Pattern[str] | None = None


def register_secret(secret: str) -> None:
    """Redact ``secret`` from now on, also in its JSON, HTML, URL and base64 encodings. Thread-safe."""
    global _pattern  # noqa: PLW0603 - every output of the process is redacted
    text = secret.strip()
    if len(text) < MIN_LENGTH or text in _secrets:
        return
    _secrets.update(_encodings(text))
    longest_first = sorted(_secrets, key=len, reverse=True)
    _pattern = re.compile("|".join(re.escape(encoding) for encoding in longest_first))


def redact(text: str) -> str:
    """``text`` without secrets."""
    return _pattern.sub(REDACTED, text) if _pattern else text


def redact_bytes(data: bytes) -> bytes:
    """UTF-8 text without secrets; other bytes are unchanged."""
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if _pattern else data


def redact_json(data: bytes) -> bytes:
    """A JSON document without secrets in its strings; anything else is redacted as text."""
    if _pattern is None or not _pattern.search(text := data.decode("utf-8", "replace")):
        return data
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


def _encodings(text: str) -> set[str]:
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
