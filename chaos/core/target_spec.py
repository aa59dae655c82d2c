"""Selectors of target nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from chaos.core.field_types import Model
from chaos.core.json_schema import JsonSchema

LabelValue = Annotated[
    str,
    BeforeValidator(lambda value: "" if value is None else value),  # as kubectl: a bare key is an empty text
    WithJsonSchema({"type": ["string", "null"]}),
]
_PERCENT = "0*(?:[1-9][0-9]?|100)%"
_COUNT = {
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^(?:0*[1-9][0-9]*|{_PERCENT})$"}]
}


class LabelRequirement(Model):
    """An entry of ``matchExpressions``, with the meaning that it has in Kubernetes."""

    key: str = Field(min_length=1, description="The key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label is compared with the values, or whether it exists."
    )
    values: list[str] = Field([], description="The values for In and NotIn.")

    @model_validator(mode="after")
    def _values_of_sets(self) -> Self:
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            takes = "needs values" if not self.values else "takes no values"
            raise ValueError(f"the operator {self.operator} {takes}")
        return self

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a Node with these labels is selected. One without the key is not in any set."""
        found = labels.get(self.key)
        if self.operator in ("In", "Exists"):
            return found is not None and (self.operator == "Exists" or found in self.values)
        return found is None or (self.operator == "NotIn" and found not in self.values)


class TargetSpec(Model):
    """Selector of target nodes: all given filters must match. The nodes are selected once, with a recorded seed."""

    role: Literal["worker", "control-plane"] | None = Field(None, description="The role of the nodes.")
    nodes: list[str] | None = Field(None, min_length=1, description="The names of the nodes.")
    except_: list[str] = Field([], alias="except", description="The names of nodes that nodefall never selects.")
    match_labels: dict[str, LabelValue] | None = Field(
        None, alias="matchLabels", description="Labels that the Node must have."
    )
    match_expressions: list[LabelRequirement] = Field(
        [], alias="matchExpressions", description="Requirements on labels, as in a Kubernetes label selector."
    )
    zone: str | None = Field(None, description="The value of the label topology.kubernetes.io/zone.")
    os: Literal["linux", "windows"] | None = Field(None, description="The operating system of the nodes.")
    runs: Literal["workload"] | None = Field(
        None, description="workload: the node can run pods of the workload, and runs one before the first step"
    )
    count: Annotated[int | str, JsonSchema(_COUNT)] = Field(
        1, description="a number, or a percentage (rounded down, at least 1)"
    )

    @model_validator(mode="after")
    def _no_exception_of_names(self) -> Self:
        if self.nodes and self.except_:
            raise ValueError("give either nodes or except")
        return self

    @field_validator("count", mode="before")
    @classmethod
    def _count(cls, value: Any) -> Any:
        text = str(value)[:20]
        number = text.removesuffix("%")
        fits = isinstance(value, int | str) and number.isascii() and number.isdigit() and int(number) >= 1
        if not fits or (text != number and int(number) > 100):
            raise ValueError(f"count must be a whole number from 1 or a percentage like 25%, not {text!r}")
        return value
