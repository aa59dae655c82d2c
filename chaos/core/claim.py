"""What an assertion states, in words for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Claim:
    """Two clauses in the past tense, without a time: that the statement is true, and that it is not.

    Each begins with an English word, ends without a full stop, and has at most about nine words: ``node worker-2 was
    Ready``, ``node worker-2 was not Ready``. A time like ``within 40 s`` follows.
    """

    holds: str
    fails: str


@dataclass(frozen=True, slots=True)
class Noun:
    """Subject of a clause, like ``node worker-2``."""

    text: str
    is_plural: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def was(self) -> str:
        """``was`` or ``were``."""
        return "were" if self.is_plural else "was"

    def claim(self, holds: str, fails: str) -> Claim:
        """Claim of this subject, from the predicates."""
        return Claim(f"{self} {holds}", f"{self} {fails}")

    def is_(self, state: str) -> Claim:
        """Claim that this subject was in a state, like ``Ready``."""
        return self.claim(f"{self.was} {state}", f"{self.was} not {state}")


@dataclass(frozen=True, slots=True)
class Names:
    """Names for a claim.

    ``targets``: nodes by target, none if unknown. ``affected``: names of the subjects that violate the expectation, if
    it is violated. ``title``: the name that the experiment gives the expectation, or "".
    """

    targets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    affected: Sequence[str] = ()
    title: str = ""

    def nodes(self, reference: str) -> Noun:
        """The nodes of a reference, or only those that are affected: ``node worker-2``, ``3 nodes``.

        For an assertion whose subjects are nodes.
        """
        nodes = () if reference == "all" else self.targets.get(reference, (reference,))
        found = [name for name in self.affected if reference == "all" or name in nodes] or nodes
        if reference == "all" and not found:
            return Noun("all nodes", is_plural=True)
        if len(found) == 1:
            return Noun(f"node {found[0]}")
        return Noun(f"{len(found)} nodes", is_plural=True) if found else Noun(f"target {reference}")

    def on(self, reference: str | None) -> str:
        """Where something is, with a space before it: `` on worker-2``, `` on 3 nodes``, or "" for all nodes."""
        found = () if reference in (None, "all") else self.targets.get(reference or "", (reference,))
        if len(found) > 1:
            return f" on {len(found)} nodes"
        if found:
            return f" on {found[0]}"
        return "" if reference in (None, "all") else f" on target {reference}"

    def one_affected(self) -> str:
        """The affected subject without its namespace, "" unless there is exactly one."""
        return self.affected[0].rpartition("/")[2] if len(self.affected) == 1 else ""


def namespace_text(reference: str | None) -> str:
    """`` of the workload``, `` in namespace x`` or "": a run's own namespace has a name that says nothing."""
    if reference is None:
        return ""
    return " of the workload" if reference == "workload" else f" in namespace {reference}"


def format_seconds(seconds: float) -> str:
    """A time in two words: ``0.9 s``, ``40 s``, ``330 s``, ``5 min``, ``2 h``."""
    tenths = round(seconds, 1)
    if tenths >= 10:
        tenths = float(round(seconds))
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if tenths >= 2 * unit and not tenths % unit:
            return f"{tenths / unit:g} {name}"
    return f"{tenths:g} s"
