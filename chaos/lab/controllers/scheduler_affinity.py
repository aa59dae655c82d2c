"""Affinity and anti-affinity between pods: kube-scheduler's plugin InterPodAffinity.

pkg/scheduler/framework/plugins/interpodaffinity: filtering.go and scoring.go, with the default hardPodAffinityWeight 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from chaos.lab.objects import Object, labels_of, namespace_of, node_of, selector_matches

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
_KINDS = ("podAffinity", "podAntiAffinity")
_MAX_CACHED = 512  # counts of matching pods
_Pair = tuple[str, str | None]  # topology key, and its value


class Term(NamedTuple):
    """A PodAffinityTerm of a pod. ``weight``: None for a required term. ``key`` is the same for equal terms."""

    key: bytes
    attracts: bool
    weight: int | None
    topology_key: str
    selector: Object | None
    namespaces: frozenset[str]
    namespace_selector: Object | None

    @property
    def score(self) -> int:
        """What a match of a term adds to the score of a domain."""
        if self.weight is None:
            return int(self.attracts)
        return self.weight if self.attracts else -self.weight


def terms_of(pod: Object) -> tuple[Term, ...]:
    """Required and preferred terms of the pod."""
    affinity = pod["spec"].get("affinity") or {}
    between_pods = {kind: affinity[kind] for kind in _KINDS if affinity.get(kind)}
    return _parse(msgspec.json.encode(between_pods), namespace_of(pod)) if between_pods else ()


def requires_pods(pod: Object) -> bool:
    """Whether the pod has a required affinity to other pods."""
    return any(term.attracts and term.weight is None for term in terms_of(pod))


def repelling_terms(pod: Object) -> tuple[Term, ...]:
    """The terms of the pod's required anti-affinity."""
    return tuple(term for term in terms_of(pod) if not term.attracts and term.weight is None)


@lru_cache(maxsize=4096)
def _parse(affinity: bytes, namespace: str) -> tuple[Term, ...]:
    found: list[Term] = []
    for kind, rules in msgspec.json.decode(affinity).items():
        required = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        found += [_term(kind, None, body, namespace) for body in required]
        found += [_term(kind, item["weight"], item["podAffinityTerm"], namespace) for item in preferred]
    return tuple(found)


def _term(kind: str, weight: int | None, body: Object, namespace: str) -> Term:
    """GetNamespacesFromPodAffinityTerm: without namespaces and selector, the pod's own namespace."""
    selector = body.get("namespaceSelector")
    namespaces = body.get("namespaces") or ([] if selector is not None else [namespace])
    key = msgspec.json.encode([kind, weight, body, namespace])
    attracts = kind == "podAffinity"
    return Term(key, attracts, weight, body["topologyKey"], body.get("labelSelector"), frozenset(namespaces), selector)


class TermIndex:
    """Terms of the pods in a snapshot, and the pods that match the terms of others, both counted by node."""

    def __init__(self) -> None:
        self.existing: dict[bytes, tuple[Term, Counter[str]]] = {}
        self._namespaces: dict[str, dict[str, str]] = {}  # labels
        self._matching: dict[tuple[bytes, ...], tuple[tuple[Term, ...], Counter[str]]] = {}

    def put_namespace(self, name: str, labels: dict[str, str]) -> None:
        """Add a namespace, or replace its labels."""
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = labels
            self._matching.clear()

    def matches(self, term: Term, pod: Object) -> bool:
        """Whether the term selects the pod, wherever it runs."""
        namespace = namespace_of(pod)
        selects = namespace in term.namespaces or (
            term.namespace_selector is not None
            and selector_matches(term.namespace_selector, self._namespaces.get(namespace, {}))
        )
        return selects and selector_matches(term.selector, labels_of(pod))

    def adjust(self, pod: Object, by: int) -> None:
        """Count a pod that was added (``by`` 1), or discount one that is to be removed (``by`` -1)."""
        node = node_of(pod)
        for term in terms_of(pod):
            _, nodes = self.existing.setdefault(term.key, (term, Counter()))
            nodes[node] += by
            if not nodes[node]:
                del nodes[node]
            if not nodes:
                del self.existing[term.key]
        for terms, nodes in self._matching.values():
            if all(self.matches(term, pod) for term in terms):
                nodes[node] += by

    def matching(self, terms: tuple[Term, ...], pods: Callable[[], Iterable[Object]]) -> Counter[str]:
        """Number of pods by node that match all the terms."""
        key = tuple(term.key for term in terms)
        if key not in self._matching:
            if len(self._matching) >= _MAX_CACHED:
                self._matching.clear()
            found = Counter(node_of(pod) for pod in pods() if all(self.matches(term, pod) for term in terms))
            self._matching[key] = (terms, found)
        return self._matching[key][1]


class PodAffinity:
    """What the affinities of one pod, and those of the pods that run, mean for the nodes it may be placed on.

    ``keys``: labels of nodes that make a difference. ``nodes``: labels by the name of the node.
    """

    def __init__(
        self, pod: Object, index: TermIndex, nodes: Mapping[str, Object], pods: Callable[[], Iterable[Object]]
    ) -> None:
        self._index, self._nodes, self._pods = index, nodes, pods
        own, self._scores = terms_of(pod), Counter[_Pair]()
        required = tuple(term for term in own if term.attracts and term.weight is None)
        self._required = [term.topology_key for term in required]
        self._attracting = {pair for term in required for pair, _ in self._pairs(required, term.topology_key)}
        matches_itself = bool(required) and all(index.matches(term, pod) for term in required)
        self._is_first = not self._attracting and matches_itself
        self._repelling: set[_Pair] = set()
        for term in own:
            if term.weight is not None or not term.attracts:
                self._add(term, self._pairs((term,), term.topology_key), self._repelling)
        self._repelled: set[_Pair] = set()
        matching = [(term, counts) for term, counts in index.existing.values() if index.matches(term, pod)]
        for term, counts in matching:
            self._add(term, self._domains(counts, term.topology_key), self._repelled)
        self.keys = tuple(sorted({term.topology_key for term in (*own, *(term for term, _ in matching))}))

    def _add(self, term: Term, pairs: Iterable[tuple[_Pair, int]], repelling: set[_Pair]) -> None:
        if term.weight is None and not term.attracts:
            repelling.update(pair for pair, _ in pairs)
            return
        for pair, number in pairs:
            self._scores[pair] += number * term.score

    def _pairs(self, terms: tuple[Term, ...], key: str) -> Iterator[tuple[_Pair, int]]:
        return self._domains(self._index.matching(terms, self._pods), key)

    def _domains(self, counts: Counter[str], key: str) -> Iterator[tuple[_Pair, int]]:
        for name, number in counts.items():
            node = self._nodes.get(name)
            if number and node is not None and key in labels_of(node):
                yield (key, labels_of(node)[key]), number

    def refusal(self, labels: Mapping[str, str | None]) -> str:
        """Reason why a node with these labels does not fit, empty if it fits."""
        pairs = [(key, labels.get(key)) for key in self._required]
        if any(value is None for _, value in pairs):
            return AFFINITY
        if not self._is_first and any(pair not in self._attracting for pair in pairs):
            return AFFINITY
        if self._is_in(labels, self._repelling):
            return ANTI_AFFINITY
        return EXISTING_ANTI_AFFINITY if self._is_in(labels, self._repelled) else ""

    def score(self, labels: Mapping[str, str | None]) -> int:
        """Sum of the weights in the domains of a node with these labels. The highest score is the best."""
        return sum(self._scores[key, labels.get(key)] for key in self.keys) if self._scores else 0

    def _is_in(self, labels: Mapping[str, str | None], pairs: set[_Pair]) -> bool:
        return bool(pairs) and any((key, labels.get(key)) in pairs for key in self.keys)
