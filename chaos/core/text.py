"""Text for people: text from outside is escaped, and words are counted and aligned."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence

from chaos.core.redaction import redact

# Cc: control; Cf: format, which includes bidirectional overrides; Cs: lone surrogates, which UTF-8 cannot hold;
# Co, Cn: private and unassigned, which includes U+FFFE and U+FFFF that XML 1.0 forbids; Zl, Zp: line ends to scripts.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MAX_LENGTH = 2000
# The character behind which a space ends what would be a command.
_COMMAND = re.compile(
    r"#(?=#[\w.]*\[)|^[ \t]*:(?=:\S)"
    r"|:(?=:(?:error|warning|notice|debug|group|endgroup|add-\w+|set-\w+|save-state|stop-commands|echo|remove-\w+))",
    re.IGNORECASE | re.MULTILINE,
)
_CI_VARIABLES = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILDKITE")
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


def without_commands(text: str) -> str:
    """``text`` without what a CI service takes from a job's log as a command; programs read the same JSON from it.

    GitHub: ``::error`` at the start of a line, ``##[error]`` anywhere. Azure Pipelines: ``##vso[``, too. TeamCity:
    ``##teamcity[``.
    """
    is_json = text[:1] in ("{", "[") and text.rstrip()[-1:] in ("}", "]")
    return _COMMAND.sub(_json_escape if is_json else r"\g<0> ", text)


def _json_escape(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}\\u{ord(match[0][-1]):04x}"


def is_ci(environ: Mapping[str, str]) -> bool:
    """Whether a CI service reads what is printed."""
    return any(environ.get(name, "").lower() not in ("", "0", "false") for name in _CI_VARIABLES)


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


def shell_word(value: object) -> str:
    """``value`` as one word in bash, zsh, dash and fish.

    Zsh takes a leading ``=`` for the path of a program, and fish a backslash in single quotes for an escape.
    """
    text = str(value)
    word = f"'{text}'" if text.startswith("=") and text == shlex.quote(text) else shlex.quote(text)
    return word.replace("\\", "'\"\\\\\"'")


def count_of(number: int, noun: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, its cells padded to the width of their columns. All rows have as many cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
