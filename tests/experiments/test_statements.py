"""The map of statements names what there is; and of each statement, an experiment notices that it is false.

One mutant of each in the second stage of ``.ci/run``, all if NODEFALL_EXPERIMENTS=all (``.ci/nightly``).
"""

from __future__ import annotations

import pytest

from chaos.core.errors import Exit
from chaos.documents.statements import Statement
from chaos.lab.breakages import check
from tests.kit.experiment_runs import IS_WHOLE
from tests.kit.rehearsals import loaded
from tools import mutants

MAP = mutants.statements()


@pytest.mark.parametrize("statement", MAP, ids=lambda item: item.id)
def test_it_names_what_there_is(statement: Statement) -> None:
    for name, expectations in statement.tested_by.items():
        spec = loaded(name).experiment.spec
        named = {item.name for item in (*spec.steady_state, *spec.hypothesis)} | {step.name for step in spec.method}
        assert set(expectations) <= named, name
    for breakages in statement.mutants.values():
        check(breakages)


def test_combinations_are_seeded_and_of_different_rules() -> None:
    parts = [
        Statement.model_validate(
            {
                "id": f"X{number}",
                "page": "nodes",
                "says": "",
                "mutants": {"a": [f"pod_gc.rule{number % 7}=1"], "b": ["z"]},
            }
        )
        for number in range(20)
    ]
    found = mutants.combinations(parts, 3, 1)
    assert found == mutants.combinations(parts, 3, 1) != mutants.combinations(parts, 3, 2)
    for each in found:
        rules = [int(id_[1:]) % 7 if name == "a" else "z" for id_, name in each]
        assert len(set(rules)) == len(rules) == 5


CELLS = [
    (statement, mutant)
    for statement in MAP
    for mutant in (statement.mutants if IS_WHOLE else list(statement.mutants)[:1])
]


@pytest.mark.slow
@pytest.mark.timeout(900)  # pods that are evicted and placed again for ten minutes are thousands
@pytest.mark.parametrize(("statement", "mutant"), CELLS, ids=lambda item: getattr(item, "id", item))
def test_an_experiment_notices_that_it_is_false(statement: Statement, mutant: str) -> None:
    cells = [cell for _, name, cell in mutants.cells([statement]) if name == mutant]
    codes = {}
    for cell in cells:
        codes[cell[0]] = mutants.exit_code(cell)
        if codes[cell[0]] == Exit.VIOLATED:
            return
    pytest.fail(f"{mutant}: {codes}")
