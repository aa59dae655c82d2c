"""Expressions in CEL, the language of Kubernetes' own validation rules; the extra ``cel`` brings it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ERROR_POSITION = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


class Cel:
    """A condition over lists. Raises ValueError if it is none, or CEL is not installed."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        try:
            from cel_expr_python import cel  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ValueError("CEL is not installed; it comes with: pip install 'nodefall[cel]'") from error
        kinds = cel.Type
        environment = cel.NewEnv(variables={name: kinds.List(kinds.DYN) for name in variables})
        try:
            self._compiled = environment.compile(text)
        except RuntimeError as error:
            raise ValueError(f"{text!r} is not a CEL expression: {_first_error(str(error))}") from error
        if self._compiled.return_type() not in (kinds.BOOL, kinds.DYN):
            raise ValueError(f"{text!r} is a {self._compiled.return_type()}, not a condition that is true or false")
        self._bool = kinds.BOOL

    def evaluate(self, data: Mapping[str, list[Any]]) -> tuple[bool | None, str]:
        """True, false, or None with the reason why it has no value."""
        result = self._compiled.eval(data=data)
        if result.type() == self._bool:
            return bool(result.value()), ""
        return None, str(result.value()).split(" [", maxsplit=1)[0]


def _first_error(message: str) -> str:
    """The compiler's first complaint, with its place."""
    found = _ERROR_POSITION.search(message)
    return f"line {found[1]}, column {found[2]}: {found[3]}" if found else message.split("\n", maxsplit=1)[0]
