"""Steps and expectations bound to their plug-ins: their parameters are validated once, when a file is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from chaos.core.action import AnyAction, Needs
from chaos.core.assertion import Assertion


@dataclass(frozen=True, slots=True)
class BoundStep:
    """The action of a step, its Windows form if there is one, and the parameters, which both take."""

    action: AnyAction
    windows: AnyAction | None
    params: Any

    def on(self, system: str) -> AnyAction:
        """The form of the action for hosts with an operating system, else its only one."""
        needs_form = self.action.on_host and system == "windows" and system not in self.action.systems
        return self.windows or self.action if needs_form else self.action

    def needs_on(self, system: str) -> Needs:
        """The readings and resources that the variant for an operating system needs."""
        return self.on(system).needs_with(self.params)

    @property
    def systems(self) -> frozenset[str]:
        """Operating systems of the hosts that the action has a form for."""
        return self.action.systems | (frozenset({"windows"}) if self.windows else frozenset())

    @property
    def terminates_pods(self) -> bool:
        """Whether pods of the node may be terminated regardless of their budgets."""
        return self.action.terminates_pods(self.params)


@dataclass(frozen=True, slots=True)
class BoundAssertion:
    """The assertion of an expectation and its parameters, which may be invalid if another version stored them."""

    assertion: Assertion
    model: BaseModel | ValidationError

    @property
    def params(self) -> Any:
        """The parameters. Raises ValidationError."""
        if isinstance(self.model, ValidationError):
            raise self.model
        return self.model
