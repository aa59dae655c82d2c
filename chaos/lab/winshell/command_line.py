"""Command lines by the rules of the Microsoft C runtime (CommandLineToArgvW)."""

from __future__ import annotations


def split_program(line: str) -> tuple[str, str]:
    """The program's name and the rest of the line. A quoted name ends at the next quote, without escapes."""
    line = line.lstrip(" \t")
    if line.startswith('"'):
        name, _, rest = line[1:].partition('"')
        return name, rest.lstrip(" \t")
    for index, character in enumerate(line):
        if character in " \t":
            return line[:index], line[index:].lstrip(" \t")
    return line, ""


def split_arguments(text: str) -> list[str]:
    """Arguments of a program. 2n backslashes before a quote are n, 2n+1 are n and a literal quote."""
    arguments: list[str] = []
    position, length = 0, len(text)
    while True:
        while position < length and text[position] in " \t":
            position += 1
        if position >= length:
            return arguments
        argument, position = _next_argument(text, position)
        arguments.append(argument)


def _next_argument(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    quoted = False
    while position < len(text) and (quoted or text[position] not in " \t"):
        slashes = 0
        while position < len(text) and text[position] == "\\":
            slashes += 1
            position += 1
        if position < len(text) and text[position] == '"':
            parts.append("\\" * (slashes // 2))
            if slashes % 2:
                parts.append('"')
            elif quoted and text[position + 1 : position + 2] == '"':
                parts.append('"')  # two quotes inside quotes are one
                position += 1
            else:
                quoted = not quoted
            position += 1
            continue
        parts.append("\\" * slashes)
        if position < len(text) and (quoted or text[position] not in " \t"):
            parts.append(text[position])
            position += 1
    return "".join(parts), position
