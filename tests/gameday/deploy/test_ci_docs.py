"""docs/ci.md: what it offers to copy is understood."""

from __future__ import annotations

import re
from pathlib import Path

from chaos.api import load
from chaos.documents.inventory import load_inventory

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
NAMED = re.compile(r"^`(\S+\.yaml)`[^\n]*\n\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_what_is_to_be_copied_is_understood(tmp_path: Path) -> None:
    files = dict(NAMED.findall(PAGE))
    assert list(files) == ["experiments/shop-stays.yaml", "experiments/shop.yaml", "lab.yaml"]
    (tmp_path / "experiments").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    loaded = load(tmp_path / "experiments" / "shop-stays.yaml")
    assert [manifest["kind"] for manifest in loaded.manifests] == ["Deployment"]
    lab = load_inventory(tmp_path / "lab.yaml").lab
    assert lab is not None
    rest = [text for text in BLOCK.findall(PAGE) if text not in files.values()]
    for text in rest:
        (tmp_path / "other.yaml").write_text(text)
        assert load_inventory(tmp_path / "other.yaml").cluster
    assert len(rest) == 1


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
