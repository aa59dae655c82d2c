"""Loading of good files, scalars, and any input at all."""

from __future__ import annotations

import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action, Scope, UndoKind
from chaos.core.errors import BadInput
from chaos.core.registry import PluginRegistry, discover
from chaos.core.target_spec import TargetPods
from chaos.documents.experiment import load_experiment
from chaos.documents.gameday import load_game_day
from chaos.documents.inventory import load_inventory
from chaos.documents.manifests import load_manifests, load_objects
from chaos.documents.schema import json_schema
from chaos.documents.yaml_tree import compose, resolve, to_builtins
from chaos.machines.power.redfish import RedfishPower

DATA = Path(__file__).parent / "data"
REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))


def test_an_experiment_loads() -> None:
    experiment = load_experiment(DATA / "experiment.yaml", REGISTRY)
    assert experiment.metadata.name == "graceful-poweroff"
    assert [step.action for step in experiment.spec.method] == ["poweroff", "power-on"]
    assert experiment.spec.abort[0].always is True
    never = experiment.spec.hypothesis[2].never
    assert never is not None
    assert never.until == "power-on"


def test_paths_of_an_inventory_become_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    inventory = load_inventory(DATA / "inventory.yaml")
    assert inventory.cluster is not None
    assert inventory.cluster.kubeconfig == str(DATA / "kubeconfig.yaml")
    assert inventory.cluster.controller_manager is not None
    assert inventory.cluster.controller_manager.ca == str(DATA / "controller-manager.pem")
    assert inventory.defaults.identity_file == "/home/me/.ssh/chaos"
    assert inventory.defaults.known_hosts == str(DATA / "known_hosts")
    power = inventory.hosts["worker-1"].power
    assert isinstance(power, RedfishPower)
    assert power.password is not None
    assert power.password.file == str(DATA / "bmc.txt")


SCALARS: list[tuple[str, Any]] = [
    ("on", "on"),
    ("off", "off"),
    ("yes", "yes"),
    ("No", "No"),
    ("y", "y"),
    ("true", True),
    ("False", False),
    ("", None),
    ("~", None),
    ("null", None),
    ("1:30", "1:30"),
    ("022", 22),
    ("0o22", 18),
    ("0xff", 255),
    ("1_000", "1_000"),
    ("-7", -7),
    ("1e3", 1000.0),
    ("1.50", 1.5),
    (".5", 0.5),
    ("1.", 1.0),
    (".", "."),
    ("-", "-"),
    ("2026-11-21", "2026-11-21"),
    ("v1.36.2", "v1.36.2"),
    ("90s", "90s"),
    (".inf", float("inf")),
    ("\u0663", "\u0663"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalars_follow_yaml_1_2(text: str, value: Any) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_modes_in_manifests_are_octal_as_for_kubectl() -> None:
    deployment, config = load_manifests([DATA / "workloads" / "web-db-tiers.yaml"])
    volume = deployment["spec"]["template"]["spec"]["volumes"][0]
    assert volume["configMap"]["defaultMode"] == 0o644
    assert config["data"] == {"answer": "yes"}


def test_lists_are_the_objects_in_them(tmp_path: Path) -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}"
    (tmp_path / "a.yaml").write_text(
        f"apiVersion: v1\nkind: List\nitems:\n- {pod}\n- {{kind: List, items: [{pod}]}}\n"
        "---\napiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: b}}]\n"
        "---\napiVersion: example.org/v1\nkind: AllowList\nmetadata: {name: c}\n"
    )
    found = load_manifests([tmp_path / "a.yaml"])
    assert [(each["apiVersion"], each["kind"]) for each in found] == [
        *[("v1", "Pod")] * 2,
        ("v1", "ConfigMap"),
        ("example.org/v1", "AllowList"),
    ]


MANIFESTS = [
    ("apiVersion: v1\nkind: List\nitems: [5]\n", "expected a Kubernetes object"),
    ("apiVersion: v1\nkind: List\nitems: [{kind: Node, metadata: {name: a}}]\n", "needs apiVersion"),
    ("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Node, metadata: {name: a}}]\n", "a Node has no"),
    ("apiVersion: v1\nkind: List\nitems: []\n", "the file has no objects"),
    ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a, finalizers: [b/c]}\n", "generateName has finalizers"),
    (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
        "there is another Pod 'a'",
    ),
    ("", "the file has no objects"),
    ("- a\n", "expected a Kubernetes object"),
    ("kind: Pod\nmetadata: {name: a}\n", "needs apiVersion"),
    ("apiVersion: v1\nmetadata: {name: a}\n", "needs kind"),
    ("apiVersion: v1\nkind: Pod\n", "needs metadata.name"),
    ("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "a Node has no namespace"),
    ("apiVersion: v1\nkind: List\nmetadata: {name: a}\n", "a List needs items"),
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\n", "sets a namespace"),
]


@pytest.mark.parametrize(("text", "message"), MANIFESTS, ids=[message for _, message in MANIFESTS])
def test_bad_manifests(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=message):
        load_manifests([DATA / "workloads" / "web-db-tiers.yaml", file])


def test_problems_of_manifests_are_problems_of_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "web-db-tiers.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    file = tmp_path / "a.yaml"
    file.write_text((DATA / "experiment.yaml").read_text().replace("within: 5s", "within: 5"))
    with pytest.raises(BadInput) as caught:
        load_experiment(file, REGISTRY)
    assert [(Path(p.file).name, p.line, p.column) for p in caught.value.problems] == [
        ("a.yaml", 21, 15),
        ("web-db-tiers.yaml", 2, 7),
    ]


class Burn:
    """An action that cannot be undone."""

    name = "burn"
    scope = Scope.NODE
    undo_kind = UndoKind.IRREVERSIBLE
    params = REGISTRY.actions["poweroff"].params
    irreversible_params = ()
    undo_param = allowance = ""
    requires_later_step = ("", "")


@pytest.mark.parametrize(
    ("allow", "given", "why"),
    [
        ("[]", "{inject: [x], undo: [y]}", r"command must be allowed .*write allow: \[custom\]"),
        ("[irreversible]", "{inject: [x]}", "command must be allowed"),
        ("[custom]", "{inject: [x]}", r"command without undo cannot be undone .*write allow: \[irreversible\]"),
        ("[custom]", "{inject: systemctl stop cron, undo: [y]}", "expected a list"),
        ("[custom]", "{inject: [x], undo: [y]}", ""),
        ("[custom, irreversible]", "{inject: [x]}", ""),
    ],
)
def test_a_command_must_be_allowed(tmp_path: Path, allow: str, given: str, why: str) -> None:
    text = (DATA / "experiment.yaml").read_text().replace("action: poweroff", f"action: command, with: {given}")
    text = text.replace("workload: {manifests: [workloads/web-db-tiers.yaml]}", f"allow: {allow}")
    file = tmp_path / "a.yaml"
    file.write_text(text)
    if not why:
        assert load_experiment(file, REGISTRY).spec.method[0].action == "command"
        return
    with pytest.raises(BadInput, match=why):
        load_experiment(file, REGISTRY)


@pytest.mark.parametrize("name", ["force", "delete-emptydir-data"])
def test_a_parameter_may_make_an_action_irreversible(tmp_path: Path, name: str) -> None:
    step = f"action: drain, with: {{ignore-daemonsets: true, {name}: true}}"
    text = (DATA / "experiment.yaml").read_text().replace("action: poweroff", step)
    text = text.replace("workload: {manifests: [workloads/web-db-tiers.yaml]}", "")
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=f"drain with {name} cannot be undone"):
        load_experiment(file, REGISTRY)
    file.write_text(text.replace(f"{name}: true", f"{name}: false"))
    load_experiment(file, REGISTRY)


def test_an_irreversible_action_must_be_allowed(tmp_path: Path) -> None:
    registry = PluginRegistry({**REGISTRY.actions, "burn": Burn()}, REGISTRY.assertions)  # type: ignore[dict-item]
    text = (DATA / "experiment.yaml").read_text().replace("action: poweroff", "action: burn")
    text = text.replace("workload: {manifests: [workloads/web-db-tiers.yaml]}", "")
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"14:33: burn cannot be undone .*allow: \[irreversible\]"):
        load_experiment(file, registry)
    file.write_text(text.replace("  targets:", "  allow: [irreversible]\n  targets:"))
    assert load_experiment(file, registry).spec.allow == ["irreversible"]


@pytest.mark.parametrize(("untaint", "valid"), [("", False), ("before", True), ("after", True)])
def test_a_node_is_not_powered_on_out_of_service(tmp_path: Path, untaint: str, valid: bool) -> None:
    method = ["action: power-cut", "action: out-of-service", "action: power-on"]
    if untaint:
        taint = "action: untaint, with: {key: node.kubernetes.io/out-of-service}"
        method.insert(2 if untaint == "before" else 3, taint)
    lines = "".join(f"    - {{name: step-{n}, target: victim, {step}}}\n" for n, step in enumerate(method))
    text = (DATA / "experiment.yaml").read_text().replace("workload: {manifests: [workloads/web-db-tiers.yaml]}", "")
    head, _, rest = text.partition("  method:\n")
    tail = rest.partition("  hypothesis:")[2].replace("power-off", "step-0").replace("power-on", "step-2")
    file = tmp_path / "a.yaml"
    file.write_text(f"{head}  method:\n{lines}  hypothesis:{tail}")
    if valid:
        assert len(load_experiment(file, REGISTRY).spec.method) == 4
        return
    with pytest.raises(BadInput, match=r"out-of-service is still in effect after power-on .*add a step untaint"):
        load_experiment(file, REGISTRY)


def test_a_step_has_a_target_where_its_action_is_about_nodes(tmp_path: Path) -> None:
    on_cluster = Burn()
    on_cluster.scope, on_cluster.undo_kind = Scope.CLUSTER, UndoKind.RESTORES
    registry = PluginRegistry({**REGISTRY.actions, "burn": on_cluster}, REGISTRY.assertions)  # type: ignore[dict-item]
    text = (DATA / "experiment.yaml").read_text()
    text = text.replace("workload: {manifests: [workloads/web-db-tiers.yaml]}", "")
    file = tmp_path / "a.yaml"
    file.write_text(text.replace("action: poweroff, target: victim", "action: poweroff"))
    with pytest.raises(BadInput, match="poweroff acts on nodes: target is missing"):
        load_experiment(file, registry)
    file.write_text(text.replace("action: poweroff", "action: burn"))
    with pytest.raises(BadInput, match=r"burn has no target node .*remove target"):
        load_experiment(file, registry)
    file.write_text(text.replace("action: poweroff, target: victim", "action: burn"))
    assert load_experiment(file, registry).spec.method[0].target == ""


def test_the_schema_constrains_with_by_action() -> None:
    schema = json_schema(REGISTRY)
    step = schema["$defs"]["Step"]
    assert "poweroff" in step["properties"]["action"]["enum"]
    by_action = {
        each["if"]["properties"]["action"]["const"]: each["then"]["properties"]["with"] for each in step["allOf"]
    }
    definition = schema["$defs"][by_action["schedule-shutdown"]["$ref"].rsplit("/", 1)[-1]]
    assert {"in", "fires"} == definition["properties"].keys()


SCALAR_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
WORDS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "spec",
        "targets",
        "method",
        "hypothesis",
        "assert",
        "with",
        "after",
        "within",
        "never",
        "always",
        "until",
        "for",
        "action",
        "target",
        "hosts",
        "cluster",
        "lab",
        "power",
        "order",
        "proxyJump",
        "steadyState",
        "abort",
        "requires",
        "workload",
        "manifests",
        "kubeconfig",
        "facts",
        "count",
    ]
)
VALUES = SCALAR_VALUES | WORDS | st.sampled_from(["pods", "poweroff", "end(a)", "a + 1s", "1s + pod.x"])
TREES = st.recursive(
    VALUES,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), below, max_size=5),
    max_leaves=30,
)


def _load_all(data: bytes) -> None:
    """Every loader either loads or raises BadInput, with at least one problem."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.yaml"
        file.write_bytes(data)
        for load in (
            lambda: load_experiment(file, REGISTRY),
            lambda: load_inventory(file),
            lambda: load_game_day(file, REGISTRY, datetime(2026, 11, 23, tzinfo=UTC)),
            lambda: load_manifests([file]),
        ):
            try:
                load()
            except BadInput as error:
                assert error.problems  # noqa: PT017 - loading may also succeed


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    _load_all(data)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>#'\"%@`,?\n\t \x00~<0.", max_size=60))
def test_any_punctuation(text: str) -> None:
    _load_all(text.encode())


@settings(max_examples=200, deadline=None)
@given(TREES, st.sampled_from(["Experiment", "Inventory", "GameDay"]))
def test_any_tree(tree: Any, kind: str) -> None:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": kind}
    document = {**tree, **head} if isinstance(tree, dict) else {**head, "spec": tree, "hosts": tree, "cluster": tree}
    _load_all(yaml.safe_dump(document).encode())


@settings(max_examples=200, deadline=None)
@given(TREES, st.sampled_from(["targets", "steadyState", "method", "hypothesis", "abort", "requires", "workload"]))
def test_any_tree_in_an_experiment(tree: Any, part: str) -> None:
    document = yaml.safe_load((DATA / "experiment.yaml").read_text())
    document["spec"][part] = tree
    _load_all(yaml.safe_dump(document).encode())


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.text("abc \n:#'\"", max_size=8),
        lambda b: st.lists(b, max_size=3) | st.dictionaries(st.text("ab", min_size=1), b),
    )
)
def test_quoted_text_comes_back(tree: Any) -> None:
    documents = compose("x", yaml.safe_dump([tree], default_style='"'))
    assert [to_builtins(document) for document in documents] == [[tree]]


def test_a_jump_host_need_not_be_listed(tmp_path: Path) -> None:
    """``bastion`` is an address: no host of the inventory has that name."""
    text = (DATA / "inventory.yaml").read_text().replace("  bastion: {address: 10.0.0.1, proxyJump: []}\n", "")
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    assert load_inventory(path).defaults.proxy_jump == ["bastion"]


@pytest.mark.parametrize(
    ("action", "given", "message", "hint"),
    [
        ("preempt", "cpu: 5x", r"'5x' does not match ^\d+(\.\d+)?m?$", "The CPU request of the pod"),
    ],
)
def test_a_pattern_is_reported_with_the_description_of_the_field(
    tmp_path: Path, action: str, given: str, message: str, hint: str
) -> None:
    """Only the pattern of names is reported as that of names."""
    step = f"{{name: do, action: {action}, with: {{{given}}}}}"
    text = (DATA / "experiment.yaml").read_text(encoding="utf-8")
    file = tmp_path / "experiment.yaml"
    file.write_text(re.sub(r"  method:\n", f"  method:\n    - {step}\n", text), encoding="utf-8")
    with pytest.raises(BadInput) as bad:
        load_experiment(file, REGISTRY)
    (problem,) = [p for p in bad.value.problems if "does not match" in p.message]
    assert problem.message.startswith(message)
    assert problem.hint.startswith(hint)


def running_the_workload(tmp_path: Path, workload: str) -> Path:
    """The experiment with ``runs: workload``, and this line instead of its workload."""
    text = (DATA / "experiment.yaml").read_text(encoding="utf-8")
    text = text.replace("{role: worker, count: 1} ", "{role: worker, count: 1, runs: workload} ")
    file = tmp_path / "experiment.yaml"
    file.write_text(re.sub(r"  workload:.*\n", workload, text), encoding="utf-8")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    (tmp_path / "w.yaml").write_text(manifest, encoding="utf-8")
    return file


def test_a_target_may_run_the_workload(tmp_path: Path) -> None:
    file = running_the_workload(tmp_path, "  workload: {manifests: [w.yaml]}\n")
    assert load_experiment(file, REGISTRY).spec.targets["victim"].runs == TargetPods()


def test_a_target_may_run_pods_that_exist_already(tmp_path: Path) -> None:
    file = running_the_workload(tmp_path, "")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("runs: workload", "runs: {namespace: shop, owner: StatefulSet/db}"), encoding="utf-8")
    wanted = TargetPods(namespace="shop", owner="StatefulSet/db")
    assert load_experiment(file, REGISTRY).spec.targets["victim"].runs == wanted


def test_a_target_cannot_run_a_workload_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as bad:
        load_experiment(running_the_workload(tmp_path, ""), REGISTRY)
    (problem,) = [p for p in bad.value.problems if p.message == "the experiment has no workload"]
    hint = "add spec.workload, name the namespace of pods that exist already, or remove runs"
    assert (problem.line, problem.hint) == (8, hint)


def test_a_baseline_needs_a_workload_whose_pods_start(tmp_path: Path) -> None:
    file = running_the_workload(tmp_path, "")
    text = file.read_text(encoding="utf-8").replace(", runs: workload", "")
    file.write_text(text.replace("within: 5s", "within: 5s\n      baseline: 3x", 1), encoding="utf-8")
    with pytest.raises(BadInput) as bad:
        load_experiment(file, REGISTRY)
    (problem,) = bad.value.problems
    assert (problem.line, problem.message) == (21, "the experiment has no workload whose pods start")


def test_a_timing_a_baseline_and_a_slack_load(tmp_path: Path) -> None:
    text = (DATA / "experiment.yaml").read_text(encoding="utf-8")
    text = text.replace("within: 5s", "within: 5s\n      timing: loose\n      baseline: 3x", 1)
    file = tmp_path / "experiment.yaml"
    file.write_text(text.replace("{within: 5m}", "{within: 5m, timing: loose}"), encoding="utf-8")
    shutil.copytree(DATA / "workloads", tmp_path / "workloads")
    spec = load_experiment(file, REGISTRY).spec
    assert [(h.timing, h.baseline) for h in spec.hypothesis[:2]] == [("loose", 3.0), ("strict", None)]
    assert spec.recovery is not None
    assert spec.recovery.timing == "loose"
    inventory = tmp_path / "hosts.yaml"
    given = (DATA / "inventory.yaml").read_text(encoding="utf-8")
    inventory.write_text(given.replace("expectUID: 6f0c", "slack: 1.5x"), encoding="utf-8")
    cluster = load_inventory(inventory).cluster
    assert cluster is not None
    assert cluster.slack == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{apiVersion: v1, kind: Pod, metadata: {name: '../../x?y='}}", "is not a name of an object"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: ..}}", "is not a name of an object"),
        ("{apiVersion: v1, kind: Pod, metadata: {generateName: a/b}}", "is not the start of a name"),
        ("{apiVersion: ../../apis/apps/v1, kind: Pod, metadata: {name: x}}", "is not an apiVersion"),
        ("{apiVersion: v1/namespaces/x, kind: Pod, metadata: {name: x}}", "is not an apiVersion"),
        ("{apiVersion: v1, kind: Pod/../x, metadata: {name: x}}", "is not a kind"),
        ("{apiVersion: v1, kind: namespace, metadata: {name: x}}", "is not a kind"),
    ],
)
def test_no_name_in_a_manifest_becomes_a_path(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(text)
    for load_all in (load_manifests, load_objects):
        with pytest.raises(BadInput, match=message):
            load_all([path])
