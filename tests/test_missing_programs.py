"""The end of a test run: which programs were missing."""

from __future__ import annotations

import pytest

from tests.kit.suite import describe_missing, missing_programs

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        ("Skipped: openssh-server is not installed", ["openssh-server"]),
        ("needs sshd", ["openssh-server"]),
        ("Skipped: no containers: there is no docker (package docker.io)", ["docker.io"]),
        ("Docker does not answer, and there is no dockerd and no mmdebstrap", ["docker.io", "mmdebstrap"]),
        ("no real machines: Docker does not answer, and only root could start a daemon", ["docker"]),
        ("no Chromium is installed to open the page in", ["chromium"]),
        ("needs Debian's package prometheus-alertmanager", ["prometheus-alertmanager"]),
        ("needs Debian's package prometheus (apt-get install prometheus)", ["prometheus"]),
        ("Skipped: libvirt-python is not installed (it has no binary wheel)", ["libvirt-python"]),
        ("Skipped: could not import 'libvirt': No module named 'libvirt'", ["libvirt"]),
        ("Skipped: there is no package helm-python-sdk, which has Helm's engine", ["helm-python-sdk"]),
        ("Skipped: there is no program actionlint", ["actionlint"]),
        ("there is no nft and no ip6tables and no ip", ["nft", "ip6tables", "ip"]),
        ("Skipped: needs zsh", ["zsh"]),
        ("Skipped: no bash", ["bash"]),
        ("takes long: .ci/nightly runs it (NODEFALL_NIGHTLY=1)", []),
        ("only root can make network namespaces", []),
        ("needs a kind cluster and half an hour: pytest -m kind", []),
        ("needs root to give a directory away", []),
        ("no IPv6 here: [Errno 99] Cannot assign requested address", []),
    ],
)  # fmt: skip
def test_what_a_reason_names(reason: str, names: list[str]) -> None:
    assert list(missing_programs([reason])) == sorted(names)


def test_the_most_wanted_program_is_first() -> None:
    reasons = ["needs zsh", "ipmitool is not installed", "takes long", "ipmitool is not installed"]
    assert describe_missing(reasons) == "missing programs, and how many tests need them: ipmitool 2, zsh 1"
    assert describe_missing(["takes long"]) == ""


def test_the_last_lines_of_a_run_name_them(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.conftest import pytest_terminal_summary")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.skip(reason="ipmitool is not installed")
        @pytest.mark.parametrize("number", range(3))
        def test_skipped(number): ...

        def test_passes(): ...
        """
    )
    result = pytester.runpytest_inprocess("-rs", "-p", "no:xdist", "-p", "no:nodefall")
    *_, missing, end = [line for line in result.outlines if line]
    assert missing == "missing programs, and how many tests need them: ipmitool 3"
    assert "1 passed, 3 skipped" in end
