"""Users of a lab's API, and what they may do."""

from __future__ import annotations

import msgspec


class Rule(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, rename="camel"):
    """Rule of an RBAC role. Empty ``namespaces``: all namespaces; empty ``resource_names``: any name."""

    verbs: list[str]
    api_groups: list[str] = msgspec.field(default_factory=lambda: [""])
    resources: list[str] = []
    resource_names: list[str] = []
    non_resource_urls: list[str] = msgspec.field(default_factory=list, name="nonResourceURLs")
    namespaces: list[str] = []

    def __post_init__(self) -> None:
        """Check the rule. Raises ValueError."""
        if bool(self.resources) == bool(self.non_resource_urls):
            raise ValueError("a rule has either resources or nonResourceURLs")


class UserSpec(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A user of the API besides the administrator. An empty ``token`` is generated when the lab starts."""

    name: str
    token: str = ""
    rules: list[Rule] = []
