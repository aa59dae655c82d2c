// Keys on the lanes; every move is described for screen readers.
const spoken = document.getElementById("spoken");

const KEYS = {
  ArrowUp: () => focusRow(-1),
  ArrowDown: () => focusRow(1),
  ArrowLeft: (event) => event.shiftKey ? moveView(-1) : moveCursor(-1),
  ArrowRight: (event) => event.shiftKey ? moveView(1) : moveCursor(1),
  PageUp: () => focusRow(-20),
  PageDown: () => focusRow(20),
  "+": () => zoom(0.7, zoomCentre()),
  "=": () => zoom(0.7, zoomCentre()),
  "-": () => zoom(1 / 0.7, zoomCentre()),
  0: () => moveTo(full.from, full.to - full.from),
  Enter: () => activate(focusedItem(), view.focus),
  " ": () => activate(focusedItem(), view.focus),
};

const zoomCentre = () => view.cursor ?? (view.from + view.to) / 2;
const moveView = (direction) => pan(direction * (view.width - view.gutter) / 8);

function focusedItem() {
  const row = rows[view.focus];
  if (!row) return null;
  return itemOf(row, view.cursor ?? 0, 5 * perPixel());
}

function focusRow(change) {
  view.focus = Math.min(rows.length - 1, Math.max(0, view.focus + change));
  const top = tops[view.focus], bottom = tops[view.focus + 1];
  if (top < board.scrollTop) board.scrollTop = top;
  if (bottom + AXIS > board.scrollTop + view.height) board.scrollTop = bottom + AXIS - view.height;
  speak();
}

function moveCursor(direction) {
  const row = rows[view.focus];
  if (!row) { focusRow(1); return; }
  const found = nextChange(row, view.cursor ?? (direction > 0 ? view.from : view.to), direction);
  if (found === null) return;
  view.cursor = found;
  reveal(found);
  speak();
}

function speak() {
  const row = rows[view.focus];
  if (!row) return;
  const name = row.lane === undefined ? labelOf(row) : nameOf(row.lane);
  const item = view.cursor === null ? null : focusedItem();
  const words = item ? wordsOf(item).join(", ") : view.cursor === null ? "" : stateText(row, view.cursor);
  spoken.textContent = [name, view.cursor === null ? "" : `at ${offset(view.cursor)}`, words].filter(Boolean).join(": ");
}

function listenToKeys() {
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key](event);
    redraw();
  });
  canvas.addEventListener("focus", () => { if (view.focus < 0) view.focus = 0; redraw(); });
  canvas.addEventListener("copy", copyName);
  document.addEventListener("copy", (event) => { if (document.activeElement === canvas) copyName(event); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) { event.preventDefault(); closePanel(); }
  });
}

// Ctrl + C on a lane copies its full name.
function copyName(event) {
  const row = rows[view.focus];
  if (!row || event.defaultPrevented) return;
  event.clipboardData.setData("text/plain", row.lane === undefined ? row.label : nameOf(row.lane));
  event.preventDefault();
}
