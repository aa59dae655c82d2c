"""Validation of objects' metadata.

Sources: k8s.io/apimachinery/pkg/api/validation/objectmeta.go, pkg/api/validate/content; the names by kind:
pkg/apis/*/validation.
Admission of Nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

from chaos.lab.apiserver.store import ConflictError, Store
from chaos.lab.objects import NOT_READY, Object, name_of
from chaos.lab.rules import Rules
from chaos.lab.rules.control_plane import ApiServerRules
from chaos.lab.sim import SimClock

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS_MESSAGE = "and must start and end with an alphanumeric character"
_KEY_MESSAGE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS_MESSAGE}"
_MAX_ANNOTATION_BYTES = 256 * 1024
_EMPTY = "must be non-empty"
_CHECKED_FIELDS = ("labels", "annotations", "ownerReferences", "finalizers")
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_OWNER = {"apiVersion": "version must not be empty", **dict.fromkeys(("kind", "name", "uid"), "must not be empty")}
Problems = tuple[str, ...]


def check_new(plural: str, metadata: Object) -> list[str]:
    """Problems of a new object's metadata, whose name has been generated if needed."""
    names = _name_rule(plural)
    base, name = str(metadata.get("generateName") or ""), str(metadata.get("name") or "")
    if names is None:
        return list(_common_problems(metadata))
    found = [_invalid_value("generateName", base, why) for why in names(_mask_trailing_dash(base))] if base else []
    found += [_invalid_value("name", name, why) for why in names(name)]
    return [*found, *_common_problems(metadata)]


def check_update(metadata: Object, before: Object) -> list[str]:
    """Problems of an object's new metadata."""
    if all(metadata.get(key) == before.get(key) for key in _CHECKED_FIELDS):
        return []
    found = []
    added = sorted(set(metadata.get("finalizers") or []) - set(before.get("finalizers") or []))
    if added and "deletionTimestamp" in before:
        text = ", ".join(f'"{name}"' for name in added)
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{text}}}"
        found.append(f"metadata.finalizers: Forbidden: {why}")
    return [*found, *_common_problems(metadata)]


def drop_empty_maps(obj: Object) -> None:
    """Remove empty labels and annotations of the object and its pod template: omitempty (ObjectMeta, types.go)."""
    template = obj["spec"].get("template") if isinstance(obj.get("spec"), dict) else None
    for owner in (obj, template if isinstance(template, dict) else {}):
        metadata = owner.get("metadata") or {}
        for key in ("labels", "annotations"):
            if metadata.get(key) == {}:
                del metadata[key]


@lru_cache(maxsize=4096)
def label_key_problems(key: str) -> Problems:
    """Problems of a label key, which is a "qualified name"."""
    prefix, slash, name = key.rpartition("/")
    found: list[str] = []
    if "/" in prefix:
        words = _regex_error(_KEY_MESSAGE, _KEY, "MyName", "my.name", "123-abc")
        return (f"a valid label key {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    if slash:
        found += [f"prefix part {why}" for why in subdomain_problems(prefix)] if prefix else ["prefix part " + _EMPTY]
    if not name:
        found.append("name part " + _EMPTY)
    elif len(name.encode()) > 63:
        found.append("name part " + _max_length_error(63))
    if not re.fullmatch(_KEY, name):
        found.append("name part " + _regex_error(_KEY_MESSAGE, _KEY, "MyName", "my.name", "123-abc"))
    return tuple(found)


@lru_cache(maxsize=4096)
def label_value_problems(value: str) -> Problems:
    """Problems of a label value."""
    found = [_max_length_error(63)] if len(value.encode()) > 63 else []
    if not re.fullmatch(f"({_KEY})?", value):
        what = f"a valid label must be an empty string or {_KEY_MESSAGE.removeprefix('must ')}"
        found.append(_regex_error(what, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return tuple(found)


@lru_cache(maxsize=4096)
def subdomain_problems(name: str) -> Problems:
    """Problems of an RFC 1123 subdomain."""
    what = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        f"{_ENDS_MESSAGE}"
    )
    return _pattern_problems(name, _SUBDOMAIN, 253, _regex_error(what, _SUBDOMAIN, "example.com"))


def label_problems(name: str) -> Problems:
    """Problems of an RFC 1123 label."""
    what = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS_MESSAGE}"
    dots = re.fullmatch(_SUBDOMAIN, name)
    return _pattern_problems(
        name, _LABEL, 63, "must not contain dots" if dots else _regex_error(what, _LABEL, "my-name", "123-abc")
    )


def label_1035_problems(name: str) -> Problems:
    """Problems of a DNS-1035 label."""
    what = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return _pattern_problems(name, _LABEL_1035, 63, _regex_error(what, _LABEL_1035, "my-name", "abc-123"))


def path_segment_problems(name: str) -> Problems:
    """Problems of a name that may have colons, as those of roles."""
    found = [f"may not be {name!r}"] if name in (".", "..") else []
    return tuple(found + [f"may not contain {mark!r}" for mark in "/%" if mark in name])


_RBAC = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
_NAME_RULES = {
    **dict.fromkeys(_RBAC, path_segment_problems),
    "namespaces": label_problems,
    "services": label_1035_problems,
}


def _name_rule(plural: str) -> Callable[[str], Problems] | None:
    """Rule for names of this kind; None for events, whose names are not checked: pkg/apis/core/validation/events.go."""
    if plural == "events":
        return None
    return _NAME_RULES.get(plural, subdomain_problems)


def _common_problems(metadata: Object) -> Iterator[str]:
    for key, value in (metadata.get("labels") or {}).items():
        yield from (_invalid_value("labels", key, why) for why in label_key_problems(key))
        yield from (_invalid_value("labels", value, why) for why in label_value_problems(value or ""))
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from (_invalid_value("annotations", key, why) for why in label_key_problems(key.lower()))
    if (
        sum(len(key.encode()) + len((value or "").encode()) for key, value in annotations.items())
        > _MAX_ANNOTATION_BYTES
    ):
        yield f"metadata.annotations: Too long: must have at most {_MAX_ANNOTATION_BYTES} bytes"
    yield from _owner_problems(metadata.get("ownerReferences") or [])
    yield from _finalizer_problems(metadata.get("finalizers") or [])


def _owner_problems(references: list[Any]) -> Iterator[str]:
    first = ""
    for reference in references:
        for field, why in _OWNER.items():
            if not reference.get(field):
                yield _invalid_value(f"ownerReferences.{field}", "", why)
        if (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Event"):
            yield _invalid_value("ownerReferences", reference, "/v1, Kind=Event is disallowed from being an owner")
        if reference.get("controller"):
            name = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if first:
                why = 'Only one reference can have Controller set to true. Found "true" in references for '
                yield _invalid_value("ownerReferences", references, f"{why}{first} and {name}")
            first = first or name


def _finalizer_problems(names: list[Any]) -> Iterator[str]:
    for name in names:
        yield from (_invalid_value("finalizers", name, why) for why in label_key_problems(name))
    if _ORPHAN in names and _FOREGROUND in names:
        yield _invalid_value("finalizers", names, f"finalizer {_FOREGROUND} and {_ORPHAN} cannot be both set")


def _mask_trailing_dash(base: str) -> str:
    """Replace a trailing dash, which a generated name would not end with: maskTrailingDash."""
    return base[:-2] + "a" if len(base) > 1 and base.endswith("-") else base


def _pattern_problems(name: str, pattern: str, longest: int, words: str) -> Problems:
    found = [_max_length_error(longest)] if len(name.encode()) > longest else []
    return tuple(found if re.fullmatch(pattern, name) else [*found, words])


@lru_cache
def _regex_error(what: str, pattern: str, *examples: str) -> str:
    """Format an error as content.RegexError."""
    formatted = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {formatted}regex used for validation is '{pattern}')"


def _max_length_error(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _invalid_value(field: str, value: Any, why: str) -> str:
    return f"metadata.{field}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"


class NodeRegistry(Protocol):
    """Where Nodes are."""

    store: Store
    rules: Rules

    def delete(self, plural: str, namespace: str, name: str) -> Object: ...


def admit_node(node: Object, sim: SimClock, rules: ApiServerRules) -> None:
    """Add the not-ready taint to a new node: admission TaintNodesByCondition (facts 5.4)."""
    status = node.setdefault("status", {})
    for kind in ("capacity", "allocatable") if rules.default_node_capacity else ():
        status.setdefault(kind, dict(rules.default_node_capacity))
    status.setdefault("conditions", [])
    status.setdefault("nodeInfo", {"bootID": "", "machineID": "", "systemUUID": "", "kubeletVersion": ""})
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    is_tainted = any(taint["key"] == NOT_READY and taint["effect"] == "NoSchedule" for taint in taints)
    if rules.taints_new_nodes and not is_tainted:
        taints.append({"key": NOT_READY, "effect": "NoSchedule", "timeAdded": sim.timestamp()})


def make_room(registry: NodeRegistry, node: Object) -> None:
    """Delete a Node whose name another wants, where the rules say so. Raises ConflictError."""
    name, what = name_of(node), registry.rules.api_server.second_node
    if what != "refused" and registry.store.get("nodes", "", name) is not None:
        registry.delete("nodes", "", name)
        if what == "deletes":
            raise ConflictError(f'nodes "{name}" already exists')
