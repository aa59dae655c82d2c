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
