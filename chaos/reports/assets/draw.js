// Canvases, colours of the style sheet, and text that fits.
const canvas = document.getElementById("lanes"), board = document.getElementById("board");
const pen = canvas.getContext("2d");
const FONT = "12px system-ui, sans-serif", BOLD = "600 12px system-ui, sans-serif";
const STATE_NAMES = { notready: "not ready", running: "running, not ready" };
const widths = new Map(), colours = new Map();

function ink(name) {
  let found = colours.get(name);
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, found);
  }
  return found;
}

function widthOf(text) {
  const key = pen.font + text;
  let found = widths.get(key);
  if (found === undefined) {
    if (widths.size > 20000) widths.clear();
    found = pen.measureText(text).width;
    widths.set(key, found);
  }
  return found;
}

// The text, shortened in its middle: the ends of names are what differs.
function fit(text, room) {
  if (widthOf(text) <= room) return text;
  let size = Math.floor(text.length * room / widthOf(text));
  const cut = () => `${text.slice(0, Math.ceil(size / 2))}…${text.slice(text.length - Math.floor(size / 2))}`;
  while (size > 2 && widthOf(cut()) > room) size -= 1;
  return size > 2 ? cut() : "";
}

// Sets the size of a canvas for the density of the screen, which clears it.
function resize(target, brush, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const wide = Math.round(width * ratio), tall = Math.round(height * ratio);
  if (target.width !== wide || target.height !== tall) {
    target.width = wide;
    target.height = tall;
    target.style.height = `${height}px`;
  }
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.fillStyle = ink("paper");
  brush.fillRect(0, 0, width, height);
}

// Draws inside the plot only, without the names.
function plot(body) {
  pen.save();
  pen.beginPath();
  pen.rect(view.gutter, AXIS, view.width - view.gutter, view.height - AXIS);
  pen.clip();
  body();
  pen.restore();
}

function diamond(left, middle, size, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(left, middle - size);
  pen.lineTo(left + size, middle);
  pen.lineTo(left, middle + size);
  pen.lineTo(left - size, middle);
  pen.fill();
}

function hatch(left, right, top, tall, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, Math.max(2, right - left), tall);
  pen.clip();
  pen.strokeStyle = ink(colour);
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = Math.max(left, view.gutter) - tall; at < Math.min(right, view.width); at += 5) {
    pen.moveTo(at, top + tall);
    pen.lineTo(at + tall, top);
  }
  pen.stroke();
  pen.restore();
}

// One pass over the visible rows; at most one per frame.
let queued = false;
const frames = []; // milliseconds that the last passes took, for the benchmark

function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; draw(); });
}

function draw() {
  const begin = performance.now();
  measureCanvas();
  pen.font = FONT;
  pen.textBaseline = "middle";
  const visible = visibleRows();
  for (const i of visible) drawGround(i);
  plot(() => {
    drawChosenGround();
    for (const i of visible) drawPlot(rows[i], topOf(i));
    drawStepLines();
    drawChosen();
    drawCursorLine();
  });
  for (const i of visible) drawLabel(i);
  drawAxis();
  drawMinimap();
  frames.push(performance.now() - begin);
  if (frames.length > 1000) frames.shift();
}

function measureCanvas() {
  view.width = board.clientWidth;
  view.gutter = Math.min(300, Math.round(view.width * 0.34));
  const total = totalHeight();
  document.getElementById("sizer").style.height = `${total}px`;
  view.height = Math.min(total, MAX_HEIGHT, Math.max(300, window.innerHeight * 0.8));
  board.style.height = `${view.height + 2}px`;
  view.scroll = Math.min(board.scrollTop, Math.max(0, total - view.height));
  resize(canvas, pen, view.width, view.height);
}

function visibleRows() {
  const found = [];
  for (let i = Math.max(0, rowAt(AXIS)); i < rows.length && topOf(i) < view.height; i++) found.push(i);
  return found;
}

function drawGround(i) {
  const row = rows[i], y = topOf(i), tall = tops[i + 1] - tops[i];
  const marked = row.verdict && row.verdict.id === view.chosen;
  if (row.kind !== "pod") { pen.fillStyle = ink(marked ? "mark" : "panel"); pen.fillRect(0, y, view.width, tall); }
  if (row.kind === "node" || row.kind === "heading") { pen.fillStyle = ink("line"); pen.fillRect(0, y, view.width, 1); }
}

function drawChosenGround() {
  const chosen = rows.findIndex((row) => row.lane !== undefined && row.lane === view.lane);
  if (chosen < 0) return;
  pen.fillStyle = ink("band");
  pen.fillRect(view.gutter, topOf(chosen), view.width, ROW);
}

function drawPlot(row, y) {
  if (row.kind === "steps") drawSteps(y);
  else if (row.verdict) drawVerdict(row.verdict, y);
  else if (row.chart) drawChart(row.chart, y);
  else if (row.lane !== undefined) drawLane(row.lane, y);
}

function drawLabel(i) {
  const row = rows[i], y = topOf(i);
  pen.font = row.kind === "node" || row.kind === "heading" ? BOLD : FONT;
  pen.fillStyle = row.verdict ? ink(row.verdict.status) : row.kind === "steps" ? ink("step") : row.kind === "fold" ? ink("link") : ink("ink");
  const indent = row.kind === "pod" ? 20 : 8, room = view.gutter - indent - 8 - cursorRoom(row);
  pen.fillText(fit(labelOf(row), room), indent, y + (row.chart ? 14 : ROW / 2));
  pen.font = FONT;
  if (row.chart) { pen.fillStyle = ink("quiet"); pen.fillText(fit(chartSummary(row.chart), room), indent, y + 31); }
  drawCursorState(row, y);
  if (i === view.focus) outlineRow(i);
}

function labelOf(row) {
  if (row.verdict) return `${row.verdict.symbol} ${row.label}`;
  return row.lane !== undefined && hasFlag(row.lane, TARGET) ? `${row.label} (target)` : row.label;
}

function outlineRow(i) {
  pen.strokeStyle = ink("link");
  pen.lineWidth = 2;
  pen.strokeRect(1, topOf(i) + 1, view.width - 2, tops[i + 1] - tops[i] - 2);
  pen.lineWidth = 1;
}

function drawAxis() {
  pen.fillStyle = ink("paper");
  pen.fillRect(0, 0, view.width, AXIS);
  const step = tickStep();
  pen.textAlign = "center";
  for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
    const at = x(k * step);
    if (at < view.gutter + 16 || at + widthOf(offset(k * step)) / 2 > view.width - 2) continue;
    pen.fillStyle = ink("quiet");
    pen.fillText(offset(k * step), at, AXIS / 2 - 2);
    pen.fillRect(at, AXIS - 5, 1, 5);
  }
  pen.textAlign = "start";
  pen.fillStyle = ink("line");
  pen.fillRect(0, AXIS - 1, view.width, 1);
  pen.fillStyle = ink("quiet");
  pen.fillText(fit(view.cursor === null ? "after the first step" : `at ${offset(view.cursor)}`, view.gutter - 12), 8, AXIS / 2 - 2);
}

// The whole run above the lanes: how much changed when, steps, decisions, and the visible part, which can be dragged.
const minimap = document.getElementById("minimap"), thin = minimap.getContext("2d");
const MINIMAP = 40;
let histogram = null;

const minimapX = (t) => (t - full.from) / (full.to - full.from) * view.width;
const minimapTime = (px) => full.from + px / view.width * (full.to - full.from);

// Changes of lanes per pixel; the first state of a lane is no change.
function changesPerPixel() {
  if (histogram && histogram.length === Math.ceil(view.width)) return histogram;
  histogram = new Uint32Array(Math.ceil(view.width));
  const { first, start } = data.spans;
  for (let lane = 0; lane < data.lanes.count; lane++) {
    for (let i = first[lane]; i < first[lane + 1]; i++) {
      if (i > first[lane] || start[i] > data.window[0] + 1000) histogram[Math.min(histogram.length - 1, Math.max(0, Math.floor(minimapX(start[i]))))] += 1;
    }
  }
  return histogram;
}

function drawMinimap() {
  resize(minimap, thin, view.width, MINIMAP);
  const counts = changesPerPixel(), most = counts.reduce((a, b) => Math.max(a, b), 1);
  thin.fillStyle = ink("panel");
  thin.fillRect(0, 0, view.width, MINIMAP);
  thin.fillStyle = ink("quiet");
  counts.forEach((count, px) => {
    if (!count) return;
    const tall = Math.max(2, Math.sqrt(count / most) * (MINIMAP - 12));
    thin.fillRect(px, MINIMAP - tall, 1, tall);
  });
  thin.fillStyle = ink("step");
  for (const step of data.steps) thin.fillRect(minimapX(step.begin), 0, 2, MINIMAP);
  for (const verdict of data.verdicts) drawDecision(verdict);
  drawWindow();
}

function drawDecision(verdict) {
  if (verdict.at === null || verdict.status === "held") return;
  thin.fillStyle = ink(verdict.status);
  thin.fillRect(minimapX(verdict.at) - 1, 0, 3, 8);
}

function drawWindow() {
  const left = minimapX(view.from), right = minimapX(view.to);
  thin.fillStyle = ink("shade");
  thin.fillRect(0, 0, left, MINIMAP);
  thin.fillRect(right, 0, view.width - right, MINIMAP);
  thin.strokeStyle = ink("link");
  thin.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), MINIMAP - 1);
}

function listenToMinimap() {
  const centre = (event) => {
    const size = view.to - view.from;
    moveTo(minimapTime(event.offsetX) - size / 2, size);
    redraw();
  };
  minimap.addEventListener("pointerdown", (event) => { minimap.setPointerCapture(event.pointerId); centre(event); });
  minimap.addEventListener("pointermove", (event) => { if (event.buttons) centre(event); });
}
