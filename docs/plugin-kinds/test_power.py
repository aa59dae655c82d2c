"""Power control ``my-plugin``, with a program that keeps the state in a file."""

from pathlib import Path

import pytest
from nodefall_my_plugin import DRIVER

from chaos.extend.power import NodefallError
from chaos.testing import check_power_driver, host_context

PROGRAM = """#!/bin/sh
if [ "$1" = state ]; then cat "$0.$2"; else echo "$1" > "$0.$2"; fi
"""


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "switch"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (tmp_path / "switch.m1").write_text("on\n")
    return {"kind": "my-plugin", "program": str(program), "machine": "m1"}


def test_it_keeps_the_contract_of_power_controls(settings: dict[str, str]) -> None:
    check_power_driver(DRIVER, settings)


def test_what_the_program_reports_is_an_error_that_names_the_machine(settings: dict[str, str]) -> None:
    other = settings | {"machine": "m2"}
    control = DRIVER.make(DRIVER.settings.model_validate(other), host_context(other))
    with pytest.raises(NodefallError, match="state of m2 failed"):
        control.state()
