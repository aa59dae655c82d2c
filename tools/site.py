"""Hooks of mkdocs.yml: the site has README.md as its first page, and every file of the repository that a page links to.

Pages are written for a reader of the repository, so their links lead to ``../experiments/cordon.yaml``. The
site has that file as ``experiments/cordon.yaml``, below its root, and the link is changed to it. A link to a
directory leads to its README.md, or else to a page that lists its files. A link to what does not exist stays,
and ``mkdocs build --strict`` refuses it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = "docs"
HOME = "README.md"
ALSO = (HOME, "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "experiments/README.md")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")


def site_path(path: str) -> str:
    """The path in the site of a file of the repository, both with slashes and relative to their roots."""
    if path == HOME:
        return "index.md"
    return path.removeprefix(f"{DOCS}/")


def repository_path(uri: str) -> str:
    """The file of the repository that a page of the site is made from."""
    if uri == "index.md":
        return HOME
    inside = f"{DOCS}/{uri}"
    return inside if (ROOT / inside).exists() else uri


def target_of(page: str, link: str) -> str:
    """The file or directory that a link of a page leads to, as a path of the repository; "" if there is none there."""
    if "://" in link or link.startswith(("mailto:", "/")):
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if path.startswith("..") or not (ROOT / path).exists():
        return ""
    if not (ROOT / path).is_dir():
        return path
    return f"{path}/README.md"  # of the site, where the repository has none


def links(text: str) -> Iterator[str]:
    """The links of a page to files, without those in code."""
    for part in _CODE.split(text)[::2]:
        yield from (match[2] for match in _LINK.finditer(part))


def change_links(text: str, page: str) -> str:
    """The text of a page of the repository with its links as the site needs them."""

    def change(match: re.Match[str]) -> str:
        target = target_of(page, match[2])
        if not target:
            return match[0]
        path = posixpath.relpath(site_path(target), posixpath.dirname(site_path(page)) or ".")
        return f"{match[1]}{path}{match[3] or ''}{match[4]}"

    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(change, part) for part in parts[::2]]
    return "".join(parts)


def linked_files(pages: Iterable[str]) -> dict[str, str | None]:
    """Files outside docs that the pages lead to, directly or by others, by path in the repository.

    The value is the text of a page that the repository does not have, None for a file.
    """
    found: dict[str, str | None] = {}
    waiting = list(pages)
    while waiting:
        page = waiting.pop()
        text = found.get(page) or (ROOT / page).read_text(encoding="utf-8")
        for target in (target_of(page, link) for link in links(text)):
            if target and not target.startswith(f"{DOCS}/") and target not in found and target not in ALSO:
                found[target] = None if (ROOT / target).exists() else listing(posixpath.dirname(target))
                waiting += [target] if target.endswith(".md") else []
    return found


def listing(directory: str) -> str:
    """A page with the names of a directory's files."""
    names = sorted(p.relative_to(ROOT / directory).as_posix() for p in (ROOT / directory).rglob("*") if p.is_file())
    names = [name for name in names if "__pycache__" not in name]
    return "\n".join(
        [f"# {directory}", "", "Files of this directory of the repository:", "", *(f"- `{n}`" for n in names)]
    )


def expand(nav: Any, paths: Callable[[str], list[str]]) -> Any:
    """The navigation with each ``directory/*`` replaced by the pages of that directory."""
    if isinstance(nav, list):
        return [
            each
            for item in nav
            for each in (paths(item[:-2]) if isinstance(item, str) and item.endswith("/*") else [expand(item, paths)])
        ]
    if isinstance(nav, dict):
        return {key: expand(value, paths) for key, value in nav.items()}
    return nav


def _pages_of(directory: str) -> list[str]:
    return sorted(f"{directory}/{path.name}" for path in (ROOT / DOCS / directory).glob("*.md"))


def on_config(config: Any) -> Any:
    """Expand the navigation."""
    config.nav = expand(config.nav, _pages_of)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add what is not in docs."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - only the site needs mkdocs

    pages = [f"{DOCS}/{file.src_uri}" for file in files.documentation_pages()]
    for path, text in {**dict.fromkeys(ALSO), **linked_files([*pages, *ALSO])}.items():
        source = {"content": text} if text else {"abs_src_path": str(ROOT / path)}
        files.append(File.generated(config, site_path(path), **source))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the site has the file."""
    return change_links(markdown, repository_path(page.file.src_uri))
