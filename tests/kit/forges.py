"""Markdown as GitHub and GitLab show it: their parser, cmark-gfm, and what their filters look for in its text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import cmarkgfm

COMMENT = 65_536  # characters that a comment of a pull request holds
# In the text of a page, outside of code and links. GitHub: @user, @org/team, #1, GH-1, owner/repository#1, emails.
# GitLab: also !1, $1, &1, %milestone, ~label, ^alert#1.
REFERENCE = re.compile(r"@[\w.-]|#\w|[!$&]\d|%[\w\"]|~[\w\"]|(?i:GH-\d)|\^\w")


class Rendered(HTMLParser):
    """Text outside of code, node by node as the filters of forges see it, and the elements."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.nodes: list[str] = []
        self.elements: list[str] = []
        self._code = 0
        self.feed(cmarkgfm.github_flavored_markdown_to_html(source, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
        self.close()

    def handle_starttag(self, tag: str, _: object) -> None:
        self.elements.append(tag)
        self._code += tag in ("code", "pre")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.nodes.append(data)

    @property
    def references(self) -> list[str]:
        return [found[0] for node in self.nodes for found in REFERENCE.finditer(node)]
