"""Shares, ranks, the first line and the pages of rehearsals, from samples."""

from __future__ import annotations

from msgspec import structs

from chaos.rehearsal.forecast.document import Rehearsal, Runs, Victims, exit_code_of, headline, render_json, summarize
from chaos.rehearsal.forecast.formats import rehearsal_markdown, rehearsal_page, rehearsal_text
from chaos.rehearsal.forecast.ranking import risks_of
from chaos.rehearsal.forecast.sample import Finding, FindingKind, Sample
from chaos.verdicts.outcome.measure import Outcome
from tests.kit.stored_runs import result_of, within

GONE = Finding(FindingKind.SINGLE_REPLICA, "shop/db", 1, 130.0, False, "why")
ROOM = Finding(FindingKind.NO_ROOM, "shop/web", 2, 20.0, True, "0/3 nodes | <b>available</b>")


def sample(seed: int, *findings: Finding, victim: str = "") -> Sample:
    return Sample(seed, victim, None, findings, outcome=Outcome(600.0))


def document(runs: Runs, without: Runs | None = None, each: str = "") -> Rehearsal:
    first = headline(runs, each)
    return Rehearsal(
        "lost", "Title", "hash", "s.gz", "digest", "v1.36.2", (1, 2), each, 1, first, runs, without, ("x",)
    )


def test_shares_and_the_most_important_first() -> None:
    samples = [sample(1, ROOM), sample(2, ROOM, GONE), sample(3)]
    risks = risks_of(samples)
    assert [(risk.subject, risk.runs, risk.of, risk.lasting) for risk in risks] == [
        ("shop/web", 2, 3, 2),
        ("shop/db", 1, 3, 0),  # graver, but rare
    ]
    runs = summarize(samples, (), Victims())
    expected = "shop/web has 2 pods for which there is no room for 20s and to the end of the run in 2 of 3 runs"
    assert headline(runs, "") == expected


def test_workloads_of_two_kinds_with_one_name_are_one_run() -> None:
    other = structs.replace(GONE, seconds=20.0, lasts=True)
    risk = risks_of([sample(1, GONE, other), sample(2)])[0]
    assert (risk.runs, risk.of, risk.lasting, risk.share) == (1, 2, 1, "in 1 of 2 runs")


def test_points_are_explained() -> None:
    nodes = {"w1": ("w1",), "w2": ("w2",), "w3": ("w3",)}
    refused = Sample(1, "w3", None, refused="protected")
    samples = [sample(1, victim="w1"), sample(1, GONE, ROOM, victim="w2"), refused]
    runs = summarize(samples, (), Victims(nodes, {"w2": "a"}))
    assert [(rank.victim, rank.score, rank.why) for rank in runs.victims] == [
        ("w2", 10 + 3 + 2 * 3, "1 workload without a serving pod for 2m10s in all, 2 pods without room"),
        ("w1", 0, "every workload keeps a serving pod"),
        ("w3", 0, "protected"),
    ]
    first = "w2 hurts most: 1 workload without a serving pod for 2m10s in all, 2 pods without room"
    assert headline(runs, "node") == f"{first} (1 of 2 nodes hurt; 1 cannot be the victim)"
    assert exit_code_of([refused]) == 4


def test_every_report_is_marked_and_escapes_what_others_wrote() -> None:
    nodes = Victims({"<w1>": ("<w1>",)})
    for runs, each in (
        (summarize([sample(1, GONE, ROOM)], ("a change",), Victims()), ""),
        (summarize([sample(1, GONE, ROOM, victim="<w1>")], (), nodes), "node"),
    ):
        whole = document(runs, runs, each)
        page, text = rehearsal_page(whole), rehearsal_markdown(whole)
        assert "SIMULATED" in page
        assert "<b>" not in page
        assert "<w1>" not in page
        assert "0/3 nodes &lt;b" in page.replace("| ", "")
        assert "simulated cluster" in text
        assert "nodes \\| \\<b\\>" in text
        assert rehearsal_text(whole)[0] == whole.headline
        assert render_json(whole) == render_json(whole)
        assert "<script" not in page


def test_lines_of_a_terminal_have_no_control_characters() -> None:
    runs = summarize([sample(1, structs.replace(ROOM, detail="\x1b]0;title\x07\nheld"))], (), Victims())
    lines = rehearsal_text(structs.replace(document(runs), limits=("flags\x1b[2J\nevery expectation held",)))
    assert not [line for line in lines if not line.isprintable()]
    assert "not in the answer: flags\\x1b[2J\\x0aevery expectation held" in lines


def test_nothing_lost_says_so() -> None:
    runs = summarize([Sample(1, "", None, refused="no such target")], (), Victims())
    assert headline(runs, "") == "refused: no such target"


def test_runs_without_a_fault_show_nothing_about_a_victim() -> None:
    refused = [Sample(seed, "w1", result_of(headline="refused: why"), refused="why") for seed in (1, 2)]
    nodes = Victims({"w1": ("w1",), "w2": ("w2",)})
    assert headline(summarize(refused, (), Victims({"w1": ("w1",)})), "node") == "no node can be the victim: why"
    assert headline(summarize(refused, (), Victims()), "") == "refused in 2 of 2 runs: why"
    unhurt = sample(1, victim="w2")
    first = "no node hurts: every workload keeps a serving pod, whichever of 1 is lost"
    assert headline(summarize([*refused, unhurt], (), nodes), "node") == f"{first}; 1 cannot be the victim"
    violated = Sample(1, "w2", result_of(within(50)), outcome=Outcome(600.0))
    runs = summarize([*refused, violated], (), nodes)
    assert headline(runs, "node") == f"{first}, but the experiment is violated with 1; 1 cannot be the victim"


def test_the_mean_of_a_victim_is_over_runs_with_a_fault() -> None:
    samples = [sample(1, ROOM, victim="w1"), Sample(2, "w1", None, refused="no steady state")]
    rank = summarize(samples, (), Victims({"w1": ("w1",)})).victims[0]
    assert (rank.score, rank.refused, rank.endings) == (6, "", {"refused": 2})


def test_a_pending_undo_is_not_held_and_hides_no_verdict() -> None:
    held, pending = result_of(within(20)), result_of(within(20), exit_code=3)
    assert exit_code_of([Sample(1, "", held), Sample(2, "", pending)]) == 2
    assert exit_code_of([Sample(1, "", held), Sample(2, "", result_of(within(50), exit_code=3))]) == 1
    runs = summarize([Sample(1, "", pending)], (), Victims())
    assert (runs.endings, headline(runs, "")) == (
        {"not undone": 1}, "not undone: no workload was without a serving pod"
    )  # fmt: skip
