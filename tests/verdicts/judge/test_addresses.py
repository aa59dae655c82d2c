"""Addresses that change during a run: in notes of the result, live and judged again."""

from __future__ import annotations

import pytest

from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from chaos.verdicts.judge.notes import address_changes
from tests.kit.story import Story, experiment, plugin_registry

FACT = "machine-addresses"
MOVED = "n1 is now at 172.18.0.5 (was 172.18.0.3)"


def with_address(story: Story, t: float, *addresses: str) -> Story:
    """The Node object has the addresses, besides its name."""
    listed = [{"type": "Hostname", "address": "n1"}, *({"type": "InternalIP", "address": each} for each in addresses)]
    return story.add(t, "nodes", "MODIFIED", {"metadata": {"name": "n1", "uid": "n1"}, "status": {"addresses": listed}})


@pytest.mark.parametrize(
    ("what", "story", "changes"),
    [
        ("moved", Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.5"]), (MOVED,)),
        ("the same", Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.3"]), ()),
        ("one reading", Story().host(1, FACT, ["172.18.0.3"]), ()),
        ("no reading", Story(), ()),
        (
            "there and back",
            Story().host(1, FACT, ["172.18.0.3"]).host(5, FACT, ["172.18.0.5"]).host(9, FACT, ["172.18.0.3"]),
            (MOVED, "n1 is now at 172.18.0.3 (was 172.18.0.5)"),
        ),
        (
            "one of two",
            Story().host(1, FACT, ["172.18.0.3", "fc00::3"]).host(9, FACT, ["172.18.0.5", "fc00::3"]),
            (MOVED,),
        ),
        (
            "two of two",
            Story().host(1, FACT, ["172.18.0.3", "fc00::3"]).host(9, FACT, ["172.18.0.5", "fc00::5"]),
            ("n1 is now at 172.18.0.5 and fc00::5 (was 172.18.0.3 and fc00::3)",),
        ),
        ("one more", Story().host(1, FACT, ["a"]).host(9, FACT, ["a", "b"]), ("n1 is now at b",)),
        ("one less", Story().host(1, FACT, ["a", "b"]).host(9, FACT, ["a"]), ()),
        ("no list", Story().host(1, FACT, "a").host(9, FACT, {"b": 1}), ()),
        ("by the Node alone", with_address(with_address(Story(), 1, "172.18.0.3"), 9, "172.18.0.5"), (MOVED,)),
        ("a Node without addresses for a time", with_address(with_address(Story(), 1, "a").node(5, "n1"), 9, "a"), ()),
        (
            "the container before the Node",
            with_address(Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.5"]), 1, "172.18.0.9"),
            (MOVED,),
        ),
    ],
)
def test_changes(what: str, story: Story, changes: tuple[str, ...]) -> None:
    assert address_changes(story.timeline(20), ("n1", "n2")) == changes, what


def test_other_nodes_are_not_reported() -> None:
    story = Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.5"])
    assert address_changes(story.timeline(20), ("n2",)) == ()


def test_the_result_has_them_once() -> None:
    story = Story().done(10, "poweroff", step="stop").node(0, "n1")
    for t, address in enumerate(("172.18.0.3", "172.18.0.5", "172.18.0.3", "172.18.0.5")):
        story.host(t, FACT, [address])
    result = judge(experiment(), story.timeline(50), plugin_registry(), Options(bind={"victim": ("n1",)}))
    assert result.address_changes == (MOVED, "n1 is now at 172.18.0.3 (was 172.18.0.5)")
    assert [note for note in result.notes if "is now at" in note] == list(result.address_changes)
