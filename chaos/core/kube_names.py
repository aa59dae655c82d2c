"""Names of Kubernetes objects, namespaces, labels and taints.

The same types validate the fields of documents (pydantic) and of state records (msgspec). Sources:
k8s.io/apimachinery pkg/util/validation, pkg/labels.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from chaos.core.field_types import full_match

DNS_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
OBJECT_NAME = rf"{DNS_LABEL}(?:\.{DNS_LABEL}){{0,62}}"
_QUALIFIED = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_QUALIFIED}"
LABEL_VALUE = rf"(?:{_QUALIFIED})?"
_EFFECT = "(?:NoSchedule|PreferNoSchedule|NoExecute)"
_SET = rf"\( *{LABEL_VALUE} *(?:, *{LABEL_VALUE} *)*\)"
_REQUIREMENT = rf"(?:{_KEY} *(?:=|==|!=) *{LABEL_VALUE}|{_KEY} +(?:in|notin) *{_SET}|!?{_KEY})"
_SELECTOR = rf"(?: *{_REQUIREMENT} *(?:, *{_REQUIREMENT} *)*)?"

_PART = "[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*"
_TAG = r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,128})?"
_IMAGE = rf"(?!.{{512}}){_PART}(?::[0-9]{{1,5}})?(?:/{_PART}){{0,16}}{_TAG}"


def _checks(pattern: str, error: str) -> tuple[Any, ...]:
    """What both libraries need for a text that matches ``pattern`` as a whole."""
    return Meta(pattern=rf"\A(?:{pattern})\Z"), full_match(pattern, error)


Namespace = Annotated[str, *_checks(DNS_LABEL, "is not a name of a namespace")]
ObjectName = Annotated[str, *_checks(OBJECT_NAME, "is not a name of an object")]
AnyObjectName = Annotated[str, *_checks(rf"(?:{OBJECT_NAME})?", "is not a name of an object")]  # or ""
LabelKey = Annotated[str, *_checks(_KEY, "is not a key of a label or taint; write it like example.com/name")]
LabelValue = Annotated[str, *_checks(LABEL_VALUE, "is not a value of a label or taint")]
LabelSelector = Annotated[str, *_checks(_SELECTOR, "is not a label selector; write it like app=web")]  # or ""
Image = Annotated[str, *_checks(_IMAGE, "is not a reference of an image")]
# Of state records only.
TaintEffect = Annotated[str, Meta(pattern=rf"\A{_EFFECT}\Z")]
TaintName = Annotated[str, Meta(pattern=rf"\A{_KEY}:{_EFFECT}\Z")]  # KEY:EFFECT
RemovedTaint = Annotated[str, Meta(pattern=rf"\A{_KEY}(?::{_EFFECT})?\Z")]  # KEY for all of its effects
PreviousTaints = dict[TaintName, LabelValue | None]  # None for a taint that was absent
ConditionType = Annotated[str, Meta(pattern=rf"\A{_KEY}\Z")]
ConditionStatus = Annotated[str, Meta(pattern=r"\A(?:True|False|Unknown)\Z")]


class TaintSpec(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A taint as in the spec of a Node."""

    key: LabelKey
    value: LabelValue = ""
    effect: TaintEffect
