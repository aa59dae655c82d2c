"""Expressions in CEL, the language of Kubernetes validation rules; needs the extra ``cel``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ERROR_POSITION = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


class Cel:
    """A compiled condition over lists. Raises ValueError if the text is no condition, or if CEL is not installed."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        try:
            from cel_expr_python import cel  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ValueError("CEL is not installed: run pip install 'nodefall[cel]'") from error
        types = cel.Type
        environment = cel.NewEnv(variables={name: types.List(types.DYN) for name in variables})
        try:
            self._compiled = environment.compile(text)
        except RuntimeError as error:
            raise ValueError(f"invalid CEL expression {text!r}: {_first_error(str(error))}") from error
        if self._compiled.return_type() not in (types.BOOL, types.DYN):
            raise ValueError(f"invalid CEL expression {text!r}: its type is {self._compiled.return_type()}, not bool")
        self._bool = types.BOOL

    def evaluate(self, data: Mapping[str, list[Any]]) -> tuple[bool | None, str]:
        """Return the value and "", or None and the reason why the expression has no value."""
        result = self._compiled.eval(data=data)
        if result.type() == self._bool:
            return bool(result.value()), ""
        return None, str(result.value()).split(" [", maxsplit=1)[0]


def _first_error(message: str) -> str:
    """Return the first error of the compiler, with line and column."""
    found = _ERROR_POSITION.search(message)
    return f"line {found[1]}, column {found[2]}: {found[3]}" if found else message.split("\n", maxsplit=1)[0]
