"""Text from outside (names, messages, output of hosts) made fit to be shown."""

from __future__ import annotations

import sys
import unicodedata

# Cc: control; Cf: format, which includes bidirectional overrides; Cs: lone surrogates, which UTF-8 cannot hold;
# Co, Cn: private and unassigned, which includes U+FFFE and U+FFFF that XML 1.0 forbids; Zl, Zp: line ends to scripts.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_REDACTION = "chaos.model.redaction"  # slow to import; before somebody has there is no secret
_MAX_LENGTH = 2000
_ASCII_SYMBOLS = str.maketrans({"✓": "+", "✗": "x", "…": "."})


def printable(text: str, limit: int = _MAX_LENGTH) -> str:
    """``text`` on one line, whitespace collapsed, invisible characters as escapes, at most ``limit`` characters.

    Secrets are masked before anything of that makes them another text.
    """
    shown = _escape(" ".join(_redact(text)[: 4 * limit].split()))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def escape_control(text: str) -> str:
    """``text`` without secrets, with invisible characters as escapes, line ends among them."""
    return _escape(_redact(text))


def _redact(text: str) -> str:
    redaction = sys.modules.get(_REDACTION)
    return str(redaction.redact(text)) if redaction else text


def _escape(text: str) -> str:
    return "".join(_escape_character(c) for c in text)


def escape_for_encoding(text: str, encoding: str) -> str:
    """``text`` with plain stand-ins for our own signs, and escapes for the rest, where ``encoding`` lacks them."""
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
    """``power-off on worker-2``; ``what`` alone where it is about the cluster."""
    return f"{what} on {node}" if node else what
