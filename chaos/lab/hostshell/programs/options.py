"""Options as of the systemd tools: at any position, values after ``=`` or as the next word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class UnknownOptionError(ValueError):
    """An invalid option; the text is getopt's, without the name of the program."""


def split_options(
    words: Sequence[str], flags: Mapping[str, str], valued: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Split words into options by canonical name, and the rest. Raises UnknownOptionError.

    ``flags`` and ``valued`` map accepted spellings (``--property``, ``-p``) to canonical names. A flag has one empty
    value per use.
    """
    result: dict[str, list[str]] = {}
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return result, rest + queue
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif name.startswith("--"):
            _take_long(name, value if equals else None, queue, (flags, valued), result)
        elif word[:2] in valued:
            result.setdefault(valued[word[:2]], []).append(word[2:] or _next(word, queue))
        else:
            for letter in word[1:]:
                if f"-{letter}" not in flags:
                    raise UnknownOptionError(f"invalid option -- '{letter}'")
                result.setdefault(flags[f"-{letter}"], []).append("")
    return result, rest


def _take_long(
    name: str,
    value: str | None,
    queue: list[str],
    known: tuple[Mapping[str, str], Mapping[str, str]],
    result: dict[str, list[str]],
) -> None:
    flags, valued = known
    if name in flags:
        result.setdefault(flags[name], []).append(value or "")
    elif name in valued:
        result.setdefault(valued[name], []).append(value if value is not None else _next(name, queue))
    else:
        raise UnknownOptionError(f"unrecognized option '{name}'")


def _next(name: str, queue: list[str]) -> str:
    if not queue:
        raise UnknownOptionError(f"option '{name}' requires an argument")
    return queue.pop(0)
