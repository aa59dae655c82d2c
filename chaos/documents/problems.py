"""Problems of a document, with their positions in the file: of a tree of any shape, and of records of pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from chaos.core.errors import BadInput, Problem
from chaos.documents.wording import MAPPING_TYPES, MISSING, USUAL_KEYS, did_you_mean, format_detail, mapping_hint
from chaos.documents.yaml_tree import (
    MappingEntry,
    MappingNode,
    Mark,
    Node,
    Path,
    ScalarNode,
    SequenceNode,
    child_of,
    find,
    to_builtins,
)

T = TypeVar("T")
_MAX_PROBLEMS = 100


class ErrorCollector:
    """Collector of the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, mark: Mark, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, mark.line, mark.column, message, hint))

    def raise_if_any(self) -> None:
        """Raises BadInput with all problems, without duplicates, sorted by position."""
        found = sorted(dict.fromkeys(self.problems), key=lambda p: (p.file != self.file, p.file, p.line, p.column))
        if len(found) > _MAX_PROBLEMS:
            remaining = len(found) - _MAX_PROBLEMS
            found[_MAX_PROBLEMS:] = [Problem(self.file, 0, 0, f"and {remaining} more problems")]
        if found:
            raise BadInput(found)

    def require(self, model: T | None) -> T:
        """``model``, which is None only with a problem. Raises BadInput like :meth:`raise_if_any`."""
        self.raise_if_any()
        assert model is not None  # noqa: S101 - None only with a problem
        return model


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in the tree. A position that does not exist is false and has no text and no items."""

    errors: ErrorCollector
    entry: MappingEntry | None

    @classmethod
    def of(cls, errors: ErrorCollector, root: Node) -> Cursor:
        """The root of a tree."""
        return cls(errors, MappingEntry(root.mark, root))

    def __bool__(self) -> bool:
        return self.entry is not None and not (
            isinstance(self.entry.node, ScalarNode) and self.entry.node.value is None
        )

    def get(self, *parts: str | int) -> Cursor:
        entry = self.entry
        for part in parts:
            entry = child_of(entry.node, part) if entry else None
        return Cursor(self.errors, entry)

    @property
    def node(self) -> Node | None:
        return self.entry.node if self.entry else None

    @property
    def text(self) -> str | None:
        """The text at this position, None for any other value."""
        value = self.node.value if isinstance(self.node, ScalarNode) else None
        return value if isinstance(value, str) else None

    @property
    def value(self) -> object:
        return to_builtins(self.node) if self.node else None

    def keys(self) -> list[str]:
        return list(self.node.items) if isinstance(self.node, MappingNode) else []

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        for key in self.keys():
            yield key, self.get(key)

    def items(self) -> Iterator[Cursor]:
        if isinstance(self.node, SequenceNode):
            for index in range(len(self.node.items)):
                yield self.get(index)

    def report(self, message: str, hint: str = "") -> None:
        """Report a problem with the value at this position."""
        if self.entry:
            self.errors.add(self.entry.node.mark, message, hint)

    def report_key(self, message: str, hint: str = "") -> None:
        """Report a problem with the key at this position."""
        if self.entry:
            self.errors.add(self.entry.key, message, hint)


M = TypeVar("M", bound=BaseModel)


def check_document(model: type[M], root: Cursor) -> M | None:
    """The document at ``root`` as ``model``, or None after its errors were reported."""
    assert root.node is not None  # noqa: S101 - a document is there
    return check_model(model, root.node, root.value, root.errors)


def check_model(model: type[M], root: Node, value: Any, errors: ErrorCollector) -> M | None:
    """``value`` (of ``root``) as ``model``, or None after its errors were added to ``errors``."""
    try:
        found = model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        renamed = {
            (*detail["loc"][:-1], USUAL_KEYS.get(str(detail["loc"][-1])))
            for detail in details
            if detail["type"] == "extra_forbidden"
        }
        for detail in details:
            if detail["loc"] not in renamed:  # missing, as it is there by another name
                _add(model, root, detail, errors)
        return None
    flags = list(_flags_as_numbers(found, value, ()))
    for path in flags:
        errors.add(find(root, path).entry.node.mark, "expected a number, not true or false")
    return None if flags else found


def _flags_as_numbers(found: Any, given: Any, path: Path) -> Iterator[Path]:
    """The places of true and false where a record has a number: pydantic takes them for 1 and 0."""
    if isinstance(given, bool):
        if isinstance(found, int | float) and not isinstance(found, bool):
            yield path
    elif isinstance(found, BaseModel) and isinstance(given, dict):
        for name, field in type(found).model_fields.items():
            key = field.alias or name
            if key in given:
                yield from _flags_as_numbers(getattr(found, name), given[key], (*path, key))
    elif isinstance(found, dict) and isinstance(given, dict):
        for key in found.keys() & given.keys():
            yield from _flags_as_numbers(found[key], given[key], (*path, key))
    elif isinstance(found, list | tuple) and isinstance(given, list):
        for number, (item, raw) in enumerate(zip(found, given, strict=False)):
            yield from _flags_as_numbers(item, raw, (*path, number))


def _add(model: type[BaseModel], root: Node, detail: ErrorDetails, errors: ErrorCollector) -> None:
    place = find(root, detail["loc"])
    kind = detail["type"]
    if kind == "extra_forbidden":
        key = str(detail["loc"][-1])
        known = _keys(model, place.path[:-1]) - {key}  # valid in another member of a union
        usual = USUAL_KEYS.get(key)
        hint = f"did you mean {usual!r}?" if usual in known else did_you_mean(key, known)
        errors.add(place.entry.key, f"unknown key {key!r}", hint)
    elif kind == "missing":
        key = str(detail["loc"][-1])
        errors.add(place.entry.key, f"missing key {key!r}", MISSING.get(key, ""))
    else:
        message, hint = format_detail(detail)
        if kind in MAPPING_TYPES:
            hint = mapping_hint(str(place.path[-1]) if place.path else "", detail["input"])
        if kind == "string_pattern_mismatch":
            hint = hint or _description(model, place.path)
        is_key = detail["loc"][-1:] == ("[key]",)
        errors.add(place.entry.key if is_key else place.entry.node.mark, message, hint)


def _keys(model: type[BaseModel], path: Path) -> set[str]:
    """Keys of the models at ``path`` below ``model``."""
    return {field.alias or name for name, field in _fields(model, path)}


def _description(model: type[BaseModel], path: Path) -> str:
    """Description of the field at ``path`` below ``model``, "" for one without."""
    fields = _fields(model, path[:-1]) if path else ()
    return next((f.description for name, f in fields if path[-1] == (f.alias or name) and f.description), "")


def _fields(model: type[BaseModel], path: Path) -> Iterator[tuple[str, FieldInfo]]:
    """The fields of the models at ``path`` below ``model``, by name."""
    found: list[Any] = [model]
    for part in path:
        found = [below for annotation in found for below in _field_types(annotation, part)]
    return (item for m in found if _is_model(m) for item in m.model_fields.items())


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _union_members(annotation: Any) -> list[Any]:
    """The members of a union, without Annotated around them."""
    if get_origin(annotation) in (Union, UnionType):
        return [flat for member in get_args(annotation) for flat in _union_members(member)]
    if hasattr(annotation, "__metadata__"):
        for mark in annotation.__metadata__:
            if hasattr(mark, "members"):  # a union that depends on the installed plug-ins
                return list(mark.members())
        return _union_members(get_args(annotation)[0])
    return [annotation]


def _field_types(annotation: Any, part: str | int) -> list[Any]:
    if _is_model(annotation):
        fields = annotation.model_fields.items()
        return [flat for name, f in fields if part == (f.alias or name) for flat in _union_members(f.annotation)]
    arguments = get_args(annotation)
    return _union_members(arguments[-1]) if arguments and get_origin(annotation) in (dict, list) else []
