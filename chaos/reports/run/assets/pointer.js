// Mouse and touch on the lanes: drag and wheel move, Ctrl + wheel and pinch zoom, a click opens evidence.
const tip = document.getElementById("tip");
const fingers = new Map(); // by pointer id: position of each pressed pointer
let moved = 0;

function showTip(event) {
  const item = fingers.size ? null : itemAt(event.offsetX, event.offsetY), row = rows[rowAt(event.offsetY)];
  const name = row && event.offsetX < view.gutter && row.lane !== undefined ? [nameOf(row.lane), ownerOf(row.lane)] : [];
  const lines = item ? [...(item.row.lane === undefined ? [] : [nameOf(item.row.lane)]), ...wordsOf(item)] : name;
  tip.textContent = lines.filter(Boolean).join("\n");
  tip.style.visibility = lines.length ? "visible" : "hidden";
  if (!lines.length) return;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${below ? event.clientY + 16 : Math.max(4, event.clientY - tip.offsetHeight - 8)}px`;
}

function onWheel(event) {
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * 0.002), timeAt(Math.max(view.gutter, event.offsetX)));
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX || event.deltaY);
  else return; // scrolls the lanes, or the page past them
  event.preventDefault();
  redraw();
}

function onDown(event) {
  fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  moved = 0;
  canvas.setPointerCapture(event.pointerId);
}

function onMove(event) {
  const before = fingers.get(event.pointerId);
  if (before) drag(event, before);
  view.cursor = event.offsetX > view.gutter ? timeAt(event.offsetX) : null;
  showTip(event);
  redraw();
}

function drag(event, before) {
  const now = { x: event.offsetX, y: event.offsetY };
  moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
  if (fingers.size === 2) pinch(event.pointerId, before, now);
  else {
    pan(before.x - now.x);
    if (event.pointerType === "mouse") board.scrollTop += before.y - now.y;
  }
  fingers.set(event.pointerId, now);
}

function pinch(id, before, now) {
  const other = [...fingers].find(([key]) => key !== id)[1];
  const was = Math.abs(before.x - other.x), is = Math.abs(now.x - other.x);
  if (was > 5 && is > 5) zoom(was / is, timeAt((now.x + other.x) / 2));
}

function onUp(event) {
  const pressed = fingers.delete(event.pointerId);
  if (pressed && moved < 5 && event.type === "pointerup") activate(itemAt(event.offsetX, event.offsetY), rowAt(event.offsetY));
}

// A click or Enter: folds open and close, items show their evidence.
function activate(item, index) {
  const row = rows[index];
  if (row && row.kind === "fold") { toggleFold(row.key); return; }
  view.focus = index;
  if (item) openItem(item);
  redraw();
}

function toggleFold(key) {
  if (!view.open.delete(key)) view.open.add(key);
  refresh();
}

function listenToPointer() {
  canvas.addEventListener("wheel", onWheel, { passive: false });
  canvas.addEventListener("pointerdown", onDown);
  canvas.addEventListener("pointermove", onMove);
  canvas.addEventListener("pointerup", onUp);
  canvas.addEventListener("pointercancel", onUp);
  canvas.addEventListener("pointerleave", () => { tip.style.visibility = "hidden"; view.cursor = null; redraw(); });
  board.addEventListener("scroll", redraw);
}
