// The cursor: a moment, with the state of every visible lane at it beside the lane's name.

// Index of the span of a lane at t, -1 if the object did not exist.
function spanAt(lane, t) {
  const i = firstVisible(data.spans, lane, t);
  return i < data.spans.first[lane + 1] && data.spans.start[i] <= t ? i : -1;
}

function stateText(row, t) {
  if (row.chart) { const value = valueAt(row.chart, t); return value === null ? "no value" : shortNumber(value); }
  if (row.lane === undefined) return "";
  const i = spanAt(row.lane, t);
  return i < 0 ? "absent" : stateName(data.spans.state[i]);
}

// Pixels that the state at the cursor takes from the room of a name.
function cursorRoom(row) {
  if (view.cursor === null) return 0;
  const text = stateText(row, view.cursor);
  return !text ? 0 : view.gutter < 200 ? 14 : widthOf(text) + 22;
}

function drawCursorState(row, y) {
  const text = view.cursor === null ? "" : stateText(row, view.cursor);
  if (!text) return;
  const middle = y + (row.chart ? 14 : ROW / 2), i = row.lane === undefined ? -1 : spanAt(row.lane, view.cursor);
  if (row.lane !== undefined) {
    pen.fillStyle = i < 0 ? ink("line") : ink(`s-${data.states[data.spans.state[i]]}`);
    pen.fillRect(view.gutter - 14, middle - 5, 10, 10);
  }
  if (view.gutter < 200) return;
  pen.fillStyle = ink("quiet");
  pen.textAlign = "end";
  pen.fillText(text, view.gutter - 18, middle);
  pen.textAlign = "start";
}

function drawCursorLine() {
  if (view.cursor === null) return;
  pen.fillStyle = ink("ink");
  pen.fillRect(x(view.cursor), AXIS, 1, view.height);
}

// The next moment after (direction 1) or before (-1) t at which something of the row changes; null for none.
function nextChange(row, t, direction) {
  const times = changesOf(row).sort((a, b) => a - b);
  const found = direction > 0 ? times.find((at) => at > t + 0.5) : times.reverse().find((at) => at < t - 0.5);
  return found === undefined ? null : found;
}

function changesOf(row) {
  if (row.kind === "steps") return [...data.steps, ...data.undo].flatMap((item) => [item.begin, item.end]);
  if (row.verdict) return [row.verdict.start, row.verdict.at, row.verdict.deadline].filter((t) => t !== null);
  if (row.chart) return [...row.chart.at];
  if (row.lane === undefined) return [];
  const times = [];
  for (const [table, column] of [[data.spans, "start"], [data.taints, "start"], [data.marks, "at"]]) {
    times.push(...table[column].slice(table.first[row.lane], table.first[row.lane + 1]));
  }
  return times;
}

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

// Search and filters above the timeline; the number of lanes that they leave is announced.
const control = (id) => document.getElementById(id);
const FILTERS = { show: "show", "by-node": "node", "by-owner": "owner", "by-state": "state", group: "group" };

// Layout and drawing after a change of what is shown.
function refresh() {
  layout();
  const lanes = data.lanes.count, pods = lanes - data.lanes.kind.filter((kind) => kind === NODE).length;
  const [shown, all, nodes, rest] = [shownLanes, lanes, lanes - pods, pods].map((count) => count.toLocaleString("en-US"));
  control("found").textContent = `${shown} of ${all} lanes (${nodes} nodes, ${rest} pods)`;
  document.body.dataset.lanes = shownLanes;
  redraw();
}

function fillChoices() {
  for (const [id, options] of Object.entries(choices())) addOptions(id, options);
}

// By control, the [value, text] of each option: lanes of nodes, and owners as indexes of strings.
function choices() {
  const nodes = [], owners = new Map();
  for (let lane = 0; lane < data.lanes.count; lane++) {
    if (isNode(lane)) nodes.push([lane, nameOf(lane)]);
    else if (ownerOf(lane)) owners.set(data.lanes.owner[lane], ownerOf(lane));
  }
  return { "by-node": nodes, "by-owner": [...owners].sort(([, a], [, b]) => a < b ? -1 : 1) };
}

function addOptions(id, options) {
  control(id).append(...options.map(([value, text]) => make("option", { value: String(value) }, text)));
}

// Shows everything that matches a search, or everything.
function clearFilters(search = "") {
  Object.assign(view, { show: "all", node: "", owner: "", state: "", search });
  for (const [id, key] of Object.entries(FILTERS)) control(id).value = view[key];
  control("search").value = search;
  refresh();
}

// Starts with the affected lanes, or with all changes if the run affected none.
function chooseShow() {
  view.show = data.lanes.flags.some((flags) => flags & AFFECTED) ? "affected" : "changed";
  control("show").value = view.show;
}

function listenToControls() {
  document.querySelector("form.bar").addEventListener("submit", (event) => event.preventDefault());
  control("search").addEventListener("input", (event) => { view.search = event.target.value; refresh(); });
  for (const [id, key] of Object.entries(FILTERS)) {
    control(id).addEventListener("change", (event) => { view[key] = event.target.value; refresh(); });
  }
  const press = (id, key) => control(id).addEventListener("click", (event) => { KEYS[key](event); redraw(); });
  press("zoom-in", "+");
  press("zoom-out", "-");
  press("zoom-all", "0");
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.clear(); redraw(); });
}
