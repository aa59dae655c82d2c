// What is visible, and the scale. Times are milliseconds after the first step, positions pixels of the canvas.
const AXIS = 28, ROW = 20, CHART = 46, MAX_HEIGHT = 760, LEAST_TIME = 50;
const full = { from: 0, to: 1 };
const view = {
  from: 0, to: 1, width: 0, height: 0, gutter: 0, scroll: 0, // scroll: pixels of rows above the visible ones
  show: "affected", search: "", node: "", owner: "", state: "", group: "node", open: new Set(),
  cursor: null, focus: -1, chosen: null, // time, row, key of the item whose evidence is shown
};

function resetView() {
  measureTime();
  moveTo(full.from, full.to - full.from);
}

const showsAll = () => view.from <= full.from && view.to >= full.to;

function measureTime() {
  const [begin, end] = data.window, span = Math.max(1000, end - begin);
  full.from = begin - span * 0.01;
  full.to = end + span * 0.02;
}

const x = (t) => view.gutter + (t - view.from) / (view.to - view.from) * (view.width - view.gutter);
const timeAt = (px) => view.from + (px - view.gutter) / (view.width - view.gutter) * (view.to - view.from);
const perPixel = () => (view.to - view.from) / Math.max(1, view.width - view.gutter);

function zoom(factor, around) {
  const size = Math.min(full.to - full.from, Math.max(LEAST_TIME, (view.to - view.from) * factor));
  const share = (around - view.from) / (view.to - view.from);
  moveTo(around - share * size, size);
}

function moveTo(from, size) {
  view.from = Math.min(Math.max(from, full.from), full.to - size);
  view.to = view.from + size;
}

function pan(pixels) { moveTo(view.from + pixels * perPixel(), view.to - view.from); }

// Moves the view so that a time is visible, without changing the scale.
function reveal(t) {
  const size = view.to - view.from;
  if (t < view.from + size * 0.05 || t > view.to - size * 0.05) moveTo(t - size / 2, size);
}

// A round step that leaves at least 80 pixels between ticks.
function tickStep() {
  const wanted = perPixel() * 80;
  const seconds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
  const found = seconds.find((step) => step * 1000 >= wanted);
  return found ? found * 1000 : Math.ceil(wanted / 3600000) * 3600000;
}
