"""The assets of pages with a timeline, in the order in which they are put together.

They share one scope, so that no build step is needed. A further one, which comes last, starts the page.
"""

STYLES = ("palette.css", "report.css", "timeline.css", "small.css", "print.css")
SCRIPTS = (
    "unpack.js",
    "view.js",
    "filter.js",
    "rows.js",
    "pen.js",
    "draw_lanes.js",
    "draw_verdicts.js",
    "draw_charts.js",
    "draw.js",
    "minimap.js",
    "words.js",
    "cursor.js",
    "hit.js",
    "panel.js",
    "pointer.js",
    "keyboard.js",
    "controls.js",
    "observations.js",
)
