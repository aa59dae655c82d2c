"""Facts of hosts: how they are declared, and references that name a fact together with its parameters."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, overload
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ValidationError

from chaos.core.command import HostCommand

P = TypeVar("P", bound=BaseModel)
LINES = r"(?:[^\n]*\n)*"  # form of outputs that are whole lines
ANY_TEXT = r"[\s\S]*"  # form of outputs whose parser takes all of the text
# What no program prints that a fact reads: text in another encoding, NUL, escape sequences of a terminal.
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ufffd]")
Known = Mapping[str, Any]  # values by the reference of their fact
# Input of a fact that reads only what is new: seconds since the last reading.
SECONDS_SINCE_READ = "unread-seconds"
# Names of 0.1.0, in its recordings, plans and journals.
FORMER_NAMES = {
    "inhibitors": "inhibitor-locks",
    "kubelet-frozen": "kubelet-stopped-state",
    "kubelet-inhibitor": "inhibitor-kubelet",
    "lock-holders": "inhibitor-holders",
    "lock-units": "inhibitor-units",
    "nodefall-rules": "nft-rules",
    "planted-timers": "failsafe-timers",
}


@dataclass(frozen=True, slots=True)
class FactRef:
    """A fact and its parameters, written ``name`` or ``name?key=value&key2=value2`` with sorted keys."""

    name: str
    params: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a reference. Former names are replaced by the current names. Raises ValueError."""
        name, _, query = text.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
        if len(dict(pairs)) != len(pairs):
            raise ValueError(f"fact {text!r}: a parameter is given twice")
        return cls(FORMER_NAMES.get(name, name), dict(pairs))

    def __str__(self) -> str:
        return f"{self.name}?{urlencode(sorted(self.params.items()))}" if self.params else self.name


def current_fact(reference: str) -> str:
    """``reference`` as this version writes it: a former name is replaced by the present one."""
    name, separator, query = reference.partition("?")
    return f"{FORMER_NAMES.get(name, name)}{separator}{query}"


def lines(*patterns: str | re.Pattern[str]) -> str:
    """A pattern for an output in which every line matches one of ``patterns``."""
    texts = (each if isinstance(each, str) else re.sub(r"\?P<\w+>", "?:", each.pattern) for each in patterns)
    return rf"(?:(?:{'|'.join(texts)})\n)*"


class HostFact(ABC):
    """A value read from a host: ``command`` prints it, and :meth:`parse` makes JSON of the output.

    :func:`host_fact` makes one of a function; a subclass is another way, whose docstring describes the value.
    ``needs`` are references of other facts that the command is made of, such as an address to connect to. Each is read
    once, when first needed, as it may be unreadable later. ``params`` is the pydantic model of a fact that takes
    parameters; :meth:`bind` sets ``options`` to an instance of it.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    command: HostCommand
    params: type[BaseModel] | None = None
    options: Any = None
    sample: Any = None

    def bind(self, params: Mapping[str, str]) -> Self:
        """This fact with parameters. Raises ValueError for unknown, missing and invalid parameters."""
        if self.params is None:
            if params:
                raise ValueError(f"fact {self.name} takes no parameters")
            return self
        try:
            options = self.params.model_validate(params)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise ValueError(f"fact {self.name}: {key}: {first['msg'].removeprefix('Value error, ')}") from error
        bound = copy(self)
        bound.options = options
        return bound

    def command_for(self, known: Known) -> HostCommand:  # noqa: ARG002 - for facts that have needs
        """The command, given the values of ``needs``. Raises ValueError where they allow none."""
        return self.command

    @abstractmethod
    def parse(self, stdout: str, exit_code: int) -> Any:
        """JSON value of the command's output. Raises ValueError for output that is not understood."""

    def describe_value(self) -> str:
        """Type and form of the value, in Markdown on one line."""
        return _in_one_line(type(self).__doc__)


def _in_one_line(docstring: str | None) -> str:
    return " ".join(inspect.cleandoc(docstring or "").replace("``", "`").split())


@overload
def host_fact(
    name: str,
    summary: str,
    command: HostCommand | Callable[[Known], HostCommand],
    *,
    needs: tuple[str, ...] = (),
    value: str | None = None,
    sample: Any = None,
    form: str | None = LINES,
) -> Callable[[Callable[[str, int], Any]], HostFact]: ...


@overload
def host_fact(
    name: str,
    summary: str,
    command: Callable[[Known, P], HostCommand],
    *,
    needs: tuple[str, ...] | Callable[[P | None], tuple[str, ...]] = (),
    params: type[P],
    value: str | None = None,
    sample: Any = None,
    form: str | None = LINES,
) -> Callable[[Callable[[str, int, P], Any]], HostFact]: ...


def host_fact(  # noqa: PLR0913 - the parts of a declaration
    name: str,
    summary: str,
    command: Any,
    *,
    needs: Any = (),
    params: Any = None,
    value: str | None = None,
    sample: Any = None,
    form: str | None = LINES,
) -> Any:
    """Declare a fact with a function that parses the output of ``command``, like :meth:`HostFact.parse`.

    ``command`` may be a function of the values of ``needs``. With ``params``, ``command`` and the parser get an
    instance of it as their last argument, and ``needs`` may be a function of one, or of None before it is known.
    ``value`` describes type and form of the value; the docstring of the parser does it by default. ``sample`` is a
    value for the page of the action that has declared the fact, and for its tests.

    ``form`` is a regular expression that the whole output must match, or the fact is unknown: a line that another
    program prints must never become part of a value. None for a parser that does not read the output.
    """

    def declare(parser: Callable[..., Any]) -> HostFact:
        fact = _DeclaredFact(command, parser, needs, form)
        fact.name, fact.summary, fact.params = name, summary, params
        fact.value, fact.sample = value or parser.__doc__, sample
        return fact

    return declare


class _DeclaredFact(HostFact):
    """A fact that :func:`host_fact` has made."""

    value: str | None

    def __init__(self, command: Any, parser: Callable[..., Any], needs: Any, form: str | None) -> None:
        self._make_command, self.parser, self._find_needs = command, parser, needs
        self._form = None if form is None else re.compile(form)
        self.needs = needs(None) if callable(needs) else needs
        if isinstance(command, HostCommand):
            self.command = command

    def bind(self, params: Mapping[str, str]) -> Self:
        bound = super().bind(params)
        if callable(self._find_needs):
            bound.needs = self._find_needs(bound.options)
        return bound

    def command_for(self, known: Known) -> HostCommand:
        command: HostCommand | Callable[..., HostCommand] = self._make_command
        return command if isinstance(command, HostCommand) else command(known, *self._given())

    def parse(self, stdout: str, exit_code: int) -> Any:
        value = self.parser(stdout, exit_code, *self._given())
        if self._form is not None:
            _require_form(self._form, stdout.replace("\r\n", "\n"))
        return value

    def describe_value(self) -> str:
        return _in_one_line(self.value)

    def _given(self) -> tuple[Any, ...]:
        return () if self.params is None else (self.options,)


def _require_form(form: re.Pattern[str], text: str) -> None:
    """Raises ValueError for text that a program of the fact does not print."""
    if found := _UNREADABLE.search(text):
        raise ValueError(f"cannot parse the output: it contains the character {found[0]!r}")
    if not form.fullmatch(text):
        raise ValueError(f"cannot parse the output: {text.strip()[:200]!r}")


def find_fact(facts: Mapping[str, HostFact], reference: str) -> HostFact:
    """The fact that ``reference`` names, bound to its parameters. Raises ValueError."""
    parsed = FactRef.parse(reference)
    if parsed.name not in facts:
        raise ValueError(f"unknown fact {parsed.name!r}")
    return facts[parsed.name].bind(parsed.params)
