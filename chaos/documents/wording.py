"""What is said about a wrong value of a document: a message, and a hint in the imperative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from chaos.core.field_types import NAME

# What people write first, and how the key is called.
USUAL_KEYS = {
    "steps": "method", "actions": "method", "faults": "method",
    "expect": "hypothesis", "expects": "hypothesis", "expectations": "hypothesis", "hypotheses": "hypothesis",
    "assertions": "hypothesis", "checks": "hypothesis",
    "steady": "steadyState", "steady-state": "steadyState", "steadystate": "steadyState",
    "timeout": "maxDuration", "duration": "maxDuration",
    "node": "target", "nodes": "target", "targets": "target", "on": "target",
    "type": "action", "fault": "action", "params": "with", "parameters": "with", "args": "with",
    "assertion": "assert", "at": "after", "at-most": "within", "labels": "matchLabels", "selector": "matchLabels",
}  # fmt: skip
MISSING = {
    "steadyState": "what must be so at first: add steadyState: [{assert: nodes-ready, with: {nodes: all}}]",
    "method": "the steps: add method: [{name: cut, action: power-cut, target: victim}]",
    "hypothesis": "what must be so: add hypothesis: [{assert: pods, with: {...}, after: cut, within: 90s}]",
}


def did_you_mean(wrong: str, known: Iterable[str], otherwise: str = "") -> str:
    """Hint with the nearest name, else with all names if there are few, else ""; and ``otherwise``."""
    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    nearest = get_close_matches(wrong.casefold(), folded, 1, 0.6)
    if nearest:
        return f"did you mean {folded[nearest[0]]!r}?"
    few = f"known are {', '.join(names)}" if 0 < len(names) <= 12 else ""
    return "; ".join(filter(None, (few, otherwise)))


def format_detail(detail: ErrorDetails) -> tuple[str, str]:
    """Message and hint."""
    context: dict[str, Any] = detail.get("ctx", {})
    given = detail["input"]
    formatter = _FORMATTERS.get(detail["type"])
    if formatter:
        return formatter(given, context)
    return detail["msg"].removeprefix("Value error, "), ""


def describe_value(value: Any) -> str:
    """Description of a value, for "expected text, got ..."."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    return "a list" if isinstance(value, Sequence) else "a mapping"


def _format_expected(what: str) -> Callable[[Any, dict[str, Any]], tuple[str, str]]:
    return lambda given, _: (f"expected {what}, got {describe_value(given)}", "")


def _format_text(given: Any, _: dict[str, Any]) -> tuple[str, str]:
    hint = "quote it" if isinstance(given, bool | int | float) else ""
    return f"expected text, got {describe_value(given)}", 'write "" for an empty text' if given is None else hint


def _format_boolean(given: Any, _: dict[str, Any]) -> tuple[str, str]:
    hint = "remove the quotes" if str(given).casefold() in ("true", "false") else ""
    return f"expected true or false, got {describe_value(given)}", hint


def mapping_hint(key: str, given: Any) -> str:
    """What to write instead of a text or a list, where a mapping is expected."""
    if isinstance(given, list):
        return f"write {key}: {{NAME: {{...}}}}" if key == "targets" else ""
    if not isinstance(given, str):
        return ""
    if key in ("always", "never"):
        return f"write {key}: {{for: {given}}}" if given[:1].isdigit() else f"write {key}: {{until: {given}}}"
    name, equals, value = given.partition("=")
    is_label = equals and name.strip() and not set(value) & set("=,")
    return f"write {key}: {{{name.strip()}: {value.strip(' =') or repr('')}}}" if is_label else ""


def _format_choice(given: Any, context: dict[str, Any]) -> tuple[str, str]:
    expected = str(context.get("expected", ""))
    names = [part.strip("'") for part in expected.replace(" or ", ", ").split(", ")]
    hint = did_you_mean(given, names) if isinstance(given, str) and len(names) > 1 else ""
    if not hint.startswith("did you mean"):
        hint = ""  # what is known is in the message
    if isinstance(given, bool) and str(given) in names:
        hint = f'quote it: "{given}"'
    return f"expected {expected}, got {describe_value(given)}", hint


def _format_pattern(given: Any, context: dict[str, Any]) -> tuple[str, str]:
    text, pattern = f"{str(given)[:80]!r}", context.get("pattern")
    if pattern == NAME:
        return f"invalid name {text}", "use lower-case letters, digits and, inside, -; at most 63 characters"
    return f"{text} does not match {pattern}", ""


def _format_missing_discriminator(_: Any, context: dict[str, Any]) -> tuple[str, str]:
    return f"missing key {context['discriminator']}", ""


def _format_unknown_discriminator(_: Any, context: dict[str, Any]) -> tuple[str, str]:
    return _format_choice(context["tag"], {"expected": context["expected_tags"]})


def _format_too_short(_: Any, context: dict[str, Any]) -> tuple[str, str]:
    least = context.get("min_length", 1)
    return ("must not be empty" if least == 1 else f"needs at least {least} items"), ""


_MAPPING = _format_expected("a mapping (key: value)")
_WHOLE = _format_expected("a whole number")
_NUMBER = _format_expected("a number")
MAPPING_TYPES = ("dict_type", "model_type", "model_attributes_type")
_FORMATTERS: dict[str, Callable[[Any, dict[str, Any]], tuple[str, str]]] = {
    "string_type": _format_text,
    "string_pattern_mismatch": _format_pattern,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": _format_boolean,
    "bool_parsing": _format_boolean,
    "list_type": _format_expected("a list"),
    "tuple_type": _format_expected("a list"),
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "literal_error": _format_choice,
    "enum": _format_choice,
    "union_tag_not_found": _format_missing_discriminator,
    "union_tag_invalid": _format_unknown_discriminator,
    "too_short": _format_too_short,
    "string_too_short": _format_too_short,
    "greater_than_equal": lambda given, c: (f"must be at least {c['ge']}, not {given}", ""),
    "greater_than": lambda given, c: (f"must be more than {c['gt']}, not {given}", ""),
    "less_than_equal": lambda given, c: (f"must be at most {c['le']}, not {given}", ""),
}
