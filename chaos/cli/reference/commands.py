"""Declarations of commands that describe documents and plug-ins, without a cluster."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from typing import Any

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from chaos.cli.complete import DocumentPath, complete_any_document, complete_explained
from chaos.cli.lazy import command, document_option, examples, experiment_argument, inventory_option, json_option

OUTPUTS = ("result", "plan", "journal", "rehearsal", "suggestion", "comparison", "day")

# Readline quotes all of a file that is there, also within quotes, but not of another name or the start of several.
_BASH_QUOTING = """\
    if [[ ${#COMPREPLY[@]} -eq 1 && -e ${COMPREPLY[0]} ]]; then
        [[ ${COMPREPLY[0]} == *[!A-Za-z0-9_./=:,@%+-]* ]] && compopt -o filenames
    else
        local i
        for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"; done
    fi

    return 0
"""
_QUOTED = {
    "bash": (
        ("read type value", "read -r type value"),
        ("COMPREPLY+=($value)", 'COMPREPLY+=("$value")'),
        ("    return 0\n", _BASH_QUOTING),
    ),
    "fish": (('string split "," $completion', 'string split -m 1 "," $completion'),),
}


@command(
    "nodefall validate experiments/graceful-poweroff.yaml",
    "nodefall validate my.yaml staging.yaml monthly.yaml --json",
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    shell_complete=complete_any_document,
    type=DocumentPath(),
    metavar="FILE...",
)
@document_option("Print one JSON object.")
def validate_command(**options: Any) -> int:
    """Check experiments, inventories, game days and fleets, also all of a directory.

    Prints each problem with its position and a suggestion.
    """
    from chaos.cli.reference import validate

    return validate.validate(**options)


@command(
    "nodefall list",
    "nodefall list experiments",
    "nodefall list actions",
    "nodefall list facts --json",
)
@click.argument(
    "kind", required=False, type=click.Choice(["experiments", "actions", "assertions", "facts", "host-facts"])
)
@document_option("Print one JSON object.")
def list_command(**options: Any) -> None:
    """List experiments, actions, assertions and facts.

    Without an argument, the list has the ten experiments to start with. `list experiments` adds the conformance set:
    the experiments that test statements of the Kubernetes documentation. `list facts` shows both kinds of facts: those
    for time bounds in experiments, and those that nodefall reads from hosts.
    """
    from chaos.cli.reference import explain

    explain.list_names(**options)


@command(
    "nodefall explain poweroff",
    "nodefall explain pods",
    "nodefall explain unit-state",
    "nodefall explain kubelet.shutdownGracePeriod",
    "nodefall explain within",
    "nodefall explain drain-blocked",
)
@click.argument("name", shell_complete=complete_explained)
@document_option("Print one JSON object.")
def explain_command(**options: Any) -> None:
    """Explain an action, an assertion, a fact or a time word, with parameters and an example.

    It also explains a field of a file, and a bundled experiment with the statements of the documentation that it tests.
    """
    from chaos.cli.reference import explain

    explain.explain(**options)


@click.group(
    invoke_without_command=True,
    epilog=examples("nodefall plugins", "nodefall plugins --json", "nodefall plugins check nodefall-acme"),
)
@json_option
@click.pass_context
def plugins_command(ctx: click.Context, /, as_json: bool) -> None:
    """List the plug-ins of other distributions: kind, name, version, and the plug-in contract it was written for."""
    from chaos.cli.reference import plugins

    if not ctx.invoked_subcommand:
        plugins.list_plugins(as_json)


@command("nodefall plugins check nodefall-acme", of=plugins_command, name="check")
@click.argument("distribution", metavar="DIST")
def check_command(distribution: str) -> int:
    """Check each plug-in of the distribution DIST: that it loads, its type, its example and its settings.

    What needs a host or a recording is for the tests of the package, with chaos.testing.

    Exits with 0 if every plug-in keeps the contract, with 1 if one breaks it, and with 64 if DIST has no plug-ins.
    """
    from chaos.cli.reference import plugins

    return plugins.check(distribution)


@command(
    "nodefall schema > nodefall.schema.json",
    "# first line of an experiment, for editors with the YAML language server:",
    "# yaml-language-server: $schema=nodefall.schema.json",
    "nodefall schema --catalog",
    "nodefall schema result > nodefall-result.schema.json",
)
@click.argument("kind", required=False, type=click.Choice(OUTPUTS))
@click.option("--catalog", is_flag=True, help="Print the entry for the catalog of SchemaStore instead.")
def schema_command(**options: Any) -> None:
    """Print one JSON Schema (draft 2020-12) for experiments, inventories, game days, fleets and statements.

    With KIND, that of a file that nodefall writes for programs.
    """
    from chaos.cli.reference import validate

    validate.print_schema(**options)


@command(
    "nodefall completion bash > ~/.local/share/bash-completion/completions/nodefall",
    "nodefall completion zsh > ~/.zfunc/_nodefall",
    "nodefall completion fish > ~/.config/fish/completions/nodefall.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell."""
    click.echo(script_of(shell))


def script_of(shell: str) -> str:
    """The script with which a shell gets completions from this program. Raises KeyError for an unknown shell.

    It quotes names as a shell does when it completes files. The scripts of click do not in bash, and end at a comma in
    fish.
    """
    completer = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    instance = completer(click.Command("nodefall"), {}, "nodefall", "_NODEFALL_COMPLETE")
    script = ShellComplete.source(instance)  # BashComplete would run bash to check its version
    for plain, quoting in _QUOTED.get(shell, ()):
        if plain not in script:
            raise RuntimeError(f"the completion script of click for {shell} has changed")
        script = script.replace(plain, quoting)
    return script


@command(
    "nodefall rbac my.yaml other.yaml --subject serviceaccount:chaos/nodefall | kubectl apply -f -",
    "nodefall rbac my.yaml --inventory hosts/staging.yaml --subject user:chaos",
    "nodefall rbac monthly.yaml --inventory hosts/staging.yaml --subject serviceaccount:chaos/nodefall",
    "nodefall rbac fleet.yaml --subject user:ada",
    "nodefall rbac my.yaml --json",
    "nodefall rbac --snapshot --subject user:ada",
)
@experiment_argument("experiments", nargs=-1)
@click.option(
    "--subject",
    default="user:nodefall",
    show_default=True,
    help="Who gets the roles: user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME.",
)
@click.option("--name", default="nodefall", show_default=True, help="Name of the roles and bindings.")
@click.option("--snapshot", is_flag=True, help="Include the permissions of nodefall snapshot.")
@inventory_option("The inventory, for cluster.namespace, allowNodeProxy and transport pod. No cluster is contacted.")
@document_option("Print the permissions as one JSON object instead of roles.")
def rbac_command(**options: Any) -> None:
    """Print roles with exactly the permissions that EXPERIMENTS or game days need together.

    For a fleet, the permissions are meant for the person who runs it, in each cluster: to apply and delete what the
    Jobs need. They include the permissions of the game day, because you can only grant permissions that you have.

    If a permission is missing, a run is refused before it changes anything. A separate role, which is commented out,
    has the optional permissions of doctor, plan and run.
    """
    from chaos.cli.reference import rights as rbac

    rbac.rbac(**options)


@command(
    "nodefall sudoers my.yaml other.yaml --inventory hosts/staging.yaml",
    "nodefall sudoers my.yaml -i hosts/staging.yaml > nodefall && visudo -cf nodefall",
)
@experiment_argument("experiments", nargs=-1, required=True)
@inventory_option("The inventory, for the login users of its hosts. No cluster is contacted.")
@document_option("Print one JSON object instead of a sudoers file.")
def sudoers_command(**options: Any) -> None:
    """Print the sudo rules that EXPERIMENTS need on the hosts of an inventory, as a file for /etc/sudoers.d.

    A rule is always equivalent to root, as the file explains. Experiments that only use the API need no rule.
    """
    from chaos.cli.reference import rights as host_rights

    host_rights.sudoers(**options)


@command(
    "nodefall windows-rights my.yaml other.yaml --inventory hosts/staging.yaml",
    "nodefall windows-rights my.yaml -i hosts/staging.yaml > grant.ps1",
)
@experiment_argument("experiments", nargs=-1, required=True)
@inventory_option("The inventory, for its Windows hosts and their login users. No cluster is contacted.")
@document_option("Print one JSON object instead of PowerShell.")
def windows_rights_command(**options: Any) -> None:
    """Print the rights that EXPERIMENTS need on the Windows hosts of an inventory, as PowerShell for an administrator.

    They are always equivalent to administrator, as the text explains. Experiments that only use the API need none.
    `nodefall sudoers` is the counterpart for Linux.
    """
    from chaos.cli.reference import rights as host_rights

    host_rights.windows_rights(**options)
