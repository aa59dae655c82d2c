"""The map of the mission: the statements of Kubernetes' documentation, and what shows that each is true."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from chaos.core.field_types import Metadata, Model
from chaos.core.number_types import VersionRange
from chaos.documents.document import open_document
from chaos.documents.problems import check_document

_DOCS = "https://kubernetes.io/docs"
PAGES = {
    "node-shutdown": f"{_DOCS}/concepts/cluster-administration/node-shutdown/",
    "disruptions": f"{_DOCS}/concepts/workloads/pods/disruptions/",
    "nodes": f"{_DOCS}/concepts/architecture/nodes/",
    "force-delete": f"{_DOCS}/tasks/run-application/force-delete-stateful-set-pod/",
    "taints": f"{_DOCS}/concepts/scheduling-eviction/taint-and-toleration/",
}


class Statement(Model):
    """A statement of a page, in our own words, and what tests it.

    ``tested_by``: experiments, each with the names of the expectations that are about the statement.
    ``mutants``: what makes the statement false, each with breakages of the lab (``nodefall lab breakages``, or
    COMPONENT.FIELD=VALUE) that do so. Each makes one of the experiments exit with 1.
    ``unobservable``: what would make it false and cannot be seen, and why.
    """

    id: str = Field(pattern=r"^[A-Z]\d+[a-z]?$")
    page: Literal["node-shutdown", "disruptions", "nodes", "force-delete", "taints"]
    anchor: str = ""
    says: str
    versions: VersionRange | None = None
    tested_by: dict[str, list[str]] = Field({}, alias="testedBy")
    untestable: str = Field("", description="Why no experiment can test the statement.")
    mutants: dict[str, list[str]] = {}
    unobservable: dict[str, str] = {}

    @property
    def url(self) -> str:
        return PAGES[self.page] + (f"#{self.anchor}" if self.anchor else "")

    @model_validator(mode="after")
    def _tested_or_not(self) -> Self:
        if self.untestable and (self.tested_by or self.mutants):
            raise ValueError("a statement that is untestable has no experiments and no mutants")
        return self


class Statements(Model):
    """The file experiments/statements.yaml."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["Statements"]
    metadata: Metadata
    statements: list[Statement] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        ids = [statement.id for statement in self.statements]
        if twice := sorted({item for item in ids if ids.count(item) > 1}):
            raise ValueError(f"two statements have the same id: {', '.join(twice)}")
        return self


def load_statements(path: Path) -> Statements:
    """The statements in a file. Raises BadInput with all problems."""
    root = open_document(path, "Statements")
    return root.errors.require(check_document(Statements, root))
