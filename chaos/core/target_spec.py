"""Selectors of target nodes, and of the pods that run on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from chaos.core.field_types import Model
from chaos.core.kube import Pod, is_finished, is_owned_by
from chaos.core.kube_names import LABEL_VALUE, LabelKey, LabelValue, Namespace, ObjectName
from chaos.core.number_types import CountOrPercentage

Labels = dict[
    LabelKey,
    Annotated[
        LabelValue,
        BeforeValidator(lambda value: "" if value is None else value),  # as kubectl: a bare key is an empty text
        WithJsonSchema({"type": ["string", "null"], "pattern": f"^{LABEL_VALUE}$"}),
    ],
]


class LabelRequirement(Model):
    """An entry of ``matchExpressions``, with the meaning that it has in Kubernetes."""

    key: LabelKey = Field(description="The key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label is compared with the values, or whether it exists."
    )
    values: list[LabelValue] = Field([], description="The values for In and NotIn.")

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


WORKLOAD = "workload"  # the namespace that a run makes for the experiment's workload
OWNER = r"^(Deployment|ReplicaSet|StatefulSet|DaemonSet|Job)/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class TargetPods(Model):
    """Selector of pods: all given filters must match. Pods that have finished or are being deleted never match."""

    namespace: Namespace = Field(
        WORKLOAD, description="The namespace of the pods, or workload: that of the experiment's workload."
    )
    match_labels: Labels | None = Field(None, alias="matchLabels", description="Labels that the pod must have.")
    match_expressions: list[LabelRequirement] = Field(
        [], alias="matchExpressions", description="Requirements on labels, as in a Kubernetes label selector."
    )
    owner: str | None = Field(
        None,
        pattern=OWNER,
        description="The controller of the pods, as Kind/name.",
        examples=["StatefulSet/db"],
    )

    @property
    def is_own(self) -> bool:
        """Whether the run itself makes the pods."""
        return self.namespace == WORKLOAD

    def matches(self, pod: Pod, namespace: str) -> bool:
        """Whether the pod is selected. ``namespace``: that of the run's workload."""
        metadata, labels = pod.metadata, pod.metadata.labels or {}
        kind, _, name = (self.owner or "").partition("/")
        return (
            metadata.namespace == (namespace if self.is_own else self.namespace)
            and metadata.deletion_timestamp is None
            and not is_finished(pod)
            and all(labels.get(key) == value for key, value in (self.match_labels or {}).items())
            and all(requirement.matches(labels) for requirement in self.match_expressions)
            and (not self.owner or is_owned_by(pod, kind, name))
        )

    def __str__(self) -> str:
        """``pods of StatefulSet/db in shop with app=db``."""
        labels = describe_labels(self.match_labels, self.match_expressions)
        where = "the workload" if self.is_own else self.namespace
        return f"pods of {f'{self.owner} in ' if self.owner else ''}{where}" + (f" with {labels}" if labels else "")


def describe_labels(labels: Mapping[str, str] | None, expressions: Iterable[LabelRequirement]) -> str:
    """``app=db, tier In a b``; "" for none."""
    found = [f"{key}={value}" for key, value in (labels or {}).items()]
    return ", ".join(
        [*found, *(f"{each.key} {each.operator} {' '.join(each.values)}".rstrip() for each in expressions)]
    )


def _pods(value: Any) -> Any:
    return TargetPods() if value == WORKLOAD else value


class TargetSpec(Model):
    """Selector of target nodes: all given filters must match. The nodes are selected once, with a recorded seed."""

    role: Literal["worker", "control-plane"] | None = Field(None, description="The role of the nodes.")
    nodes: list[ObjectName] | None = Field(None, min_length=1, description="The names of the nodes.")
    except_: list[ObjectName] = Field([], alias="except", description="The names of nodes that nodefall never selects.")
    match_labels: Labels | None = Field(None, alias="matchLabels", description="Labels that the Node must have.")
    match_expressions: list[LabelRequirement] = Field(
        [], alias="matchExpressions", description="Requirements on labels, as in a Kubernetes label selector."
    )
    zone: LabelValue | None = Field(None, description="The value of the label topology.kubernetes.io/zone.")
    os: Literal["linux", "windows"] | None = Field(None, description="The operating system of the nodes.")
    runs: Annotated[
        TargetPods | None,
        BeforeValidator(_pods, json_schema_input_type=Literal["workload"] | TargetPods | None),
    ] = Field(
        None,
        description="Pods of which each node runs at least one before the first step: pods that exist already, or "
        "pods of the experiment's workload, for which `workload` is short.",
    )
    spread: Literal["zone"] | None = Field(
        None, description="zone: a zone has a second node only if every zone with a matching node has one."
    )
    count: CountOrPercentage = Field(1, description="The number of nodes, or a percentage (rounded down, at least 1).")

    @model_validator(mode="after")
    def _no_exception_of_names(self) -> Self:
        if self.nodes and self.except_:
            raise ValueError("give either nodes or except")
        return self
