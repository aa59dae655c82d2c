"""A real Chromium, driven by Playwright. It is the one of the system: Playwright's own browsers are not fetched."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from playwright.sync_api import ConsoleMessage, Request, sync_playwright
from playwright.sync_api import Page as Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NO_CHROMIUM = "no Chromium is installed to open the page in"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")
_DRAWN = "document.body && (document.body.dataset.drawn || document.body.dataset.error)"
_PATIENCE = 60_000.0  # ms for one answer; the machine may be busy
_PHONE = 700  # narrower windows are those of phones


class Browser:
    """One browser process with an empty profile. Use it as a context manager."""

    def __enter__(self) -> Self:
        self._playwright = sync_playwright().start()
        try:
            self._chromium = self._playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS, timeout=_PATIENCE)
        except BaseException:
            self._playwright.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._chromium.close()
        self._playwright.stop()

    def tab(self, *, java_script: bool = True) -> Page:
        """An empty tab, in which the scripts of pages run or not."""
        return Page(self._chromium.new_page(viewport={"width": 1400, "height": 900}, java_script_enabled=java_script))

    def page(
        self, file: Path, *, width: int = 1400, height: int = 900, dark: bool = False, is_ready: str = _DRAWN
    ) -> Page:
        """Open a file in a window of this size, and wait until its script has drawn it or failed."""
        is_phone = width < _PHONE
        tab = self._chromium.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            is_mobile=is_phone,
            has_touch=is_phone,
        )
        tab.set_default_timeout(_PATIENCE)
        page = Page(tab)
        tab.goto(file.resolve().as_uri())
        page.wait(is_ready)
        return page


class Page:
    """One tab. ``tab`` is Playwright's page, for what has no method here."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self._errors: list[str] = []
        tab.on("pageerror", lambda error: self._errors.append(str(error)))
        tab.on("console", self._heard)
        tab.on("request", self._requested)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":  # violations of the policy too
            self._errors.append(message.text)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self._errors.append(f"request to {request.url}")

    def close(self) -> None:
        self.tab.context.close()

    def emulate(self, media: Literal["screen", "print"], *, dark: bool = False) -> None:
        """Show the page on a ``screen`` or in ``print``."""
        self.tab.emulate_media(
            media="print" if media == "print" else "screen", color_scheme="dark" if dark else "light"
        )

    def evaluate(self, expression: str) -> Any:
        """The JSON value of an expression; promises are awaited. Raises playwright's Error with that of the script."""
        return self.tab.evaluate(expression)

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        self.tab.wait_for_function(expression)

    def frame(self) -> None:
        """Wait until the page has drawn once more."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a position of the window."""
        self.tab.mouse.move(x, y)
        self.frame()

    def click(self, x: float, y: float) -> None:
        self.tab.mouse.click(x, y)
        self.frame()

    def drag(self, x: float, y: float, dx: float) -> None:
        """Press the button at a position, and release it ``dx`` pixels further right."""
        self.tab.mouse.move(x, y)
        self.tab.mouse.down()
        self.tab.mouse.move(x + dx, y)
        self.tab.mouse.up()
        self.frame()

    def wheel(self, x: float, y: float, dy: float, *, ctrl: bool = False) -> None:
        self.tab.mouse.move(x, y)
        if ctrl:
            self.tab.keyboard.down("Control")
        self.tab.mouse.wheel(0, dy)
        if ctrl:
            self.tab.keyboard.up("Control")
        self.frame()

    def press(self, key: str) -> None:
        """Press and release a key: a name such as ArrowDown, or a character."""
        self.tab.keyboard.press(key)
        self.frame()

    def pinch(self, x: float, y: float, distances: Sequence[float]) -> None:
        """Two fingers at these distances (pixels) from a position, one after the other; Playwright itself has one."""
        session = self.tab.context.new_cdp_session(self.tab)
        for number, away in enumerate(distances):
            points = [{"x": x - away, "y": y, "id": 0}, {"x": x + away, "y": y, "id": 1}]
            kind = "touchMove" if number else "touchStart"
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        session.detach()
        self.frame()

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        self.tab.screenshot(path=file, full_page=whole)

    def pdf(self) -> bytes:
        return self.tab.pdf(print_background=True)

    def errors(self) -> list[str]:
        """Exceptions, console errors, violations of the policy, and requests to anything but the file."""
        self.evaluate("0")  # what the page reported before is received by now
        return list(self._errors)


_LEAST_FONT = 12  # px
_READABLE = """((least) => {
  const within = (r) => r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight;
  const clips = (e) => getComputedStyle(e).overflowX !== 'visible' || getComputedStyle(e).overflowY !== 'visible';
  const fits = (e) => !clips(e) || (e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1);
  const chain = (e) => e === document.body ? [] : [e, ...chain(e.parentElement)];
  const isShown = (e, r) => { const hit = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
    return hit !== null && (e.contains(hit) || hit.contains(e)); };
  const isReadable = (e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    const rects = [...range.getClientRects()].filter((r) => r.width > 0);
    return rects.length > 0 && rects.every((r) => within(r) && isShown(e, r)) && chain(e).every(fits)
      && parseFloat(getComputedStyle(e).fontSize) >= least && getComputedStyle(e).visibility === 'visible';
  };
  const found = [...document.querySelectorAll('header h1, header p, header li, header dt, header dd')];
  return found.filter(isReadable).map((e) => e.innerText.replace(/\\s+/g, ' ').trim());
})"""


def readable_lines(page: Page) -> list[str]:
    """Headings, paragraphs, items and pairs of the page's header that can be read without scrolling."""
    return list(page.evaluate(f"{_READABLE}({_LEAST_FONT})"))
