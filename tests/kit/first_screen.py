"""What a reader of the first screen of a report can read: text inside the window, not clipped, covered or too small."""

from __future__ import annotations

from tests.kit.browser import Page

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
