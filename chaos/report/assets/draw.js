// Drawing: only visible rows, in one pass, with colours from the style sheet.
const canvas = document.getElementById("lanes"), board = document.getElementById("board");
const pen = canvas.getContext("2d");
const FONT = "12px system-ui, sans-serif";
const NAMES = { notready: "not ready", running: "running, not ready" };
let ink = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  ink = new Proxy({}, { get: (known, name) => known[name] ??= style.getPropertyValue("--" + name).trim() });
}

function fit(text, room) {
  if (pen.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(text.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1;
  }
  return low ? text.slice(0, low) + "…" : "";
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  view.width = board.clientWidth;
  view.gutter = Math.min(290, Math.round(view.width * 0.32));
  document.getElementById("sizer").style.height = total() + "px";
  view.height = Math.min(total(), 880);
  view.scroll = board.scrollTop;
  canvas.style.height = view.height + "px";
  canvas.width = Math.round(view.width * ratio);
  canvas.height = Math.round(view.height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = ink.paper;
  pen.fillRect(0, 0, view.width, view.height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  drawRows();
  drawChosen();
  drawSteps();
  drawAxis();
}

function drawRows() {
  const first = Math.floor(view.scroll / ROW), last = Math.min(rows.length, first + Math.ceil(view.height / ROW) + 1);
  for (let i = first; i < last; i++) {
    const row = rows[i], y = AXIS + i * ROW - view.scroll;
    if (row.kind !== "pod") { pen.fillStyle = ink.panel; pen.fillRect(0, y, view.width, ROW); }
    if (row.kind === "node" || (row.kind === "verdict" && view.chosen === row.verdict)) {
      pen.fillStyle = row.kind === "node" ? ink.line : ink.band;
      pen.fillRect(0, y, view.width, row.kind === "node" ? 1 : ROW);
    }
    plot(() => {
      if (row.lane) drawLane(row, y);
      if (row.verdict) drawVerdict(row.verdict, y);
    });
    drawLabel(row, y);
  }
}

function plot(body) {
  pen.save();
  pen.beginPath();
  pen.rect(view.gutter, 0, view.width - view.gutter, view.height);
  pen.clip();
  body();
  pen.restore();
}

function drawLabel(row, y) {
  pen.font = row.kind === "node" ? "600 " + FONT : FONT;
  pen.fillStyle = row.verdict ? ink[row.verdict.status] : row.kind === "steps" ? ink.step : ink.ink;
  const indent = row.kind === "pod" ? 20 : 8;
  const sign = row.verdict ? row.verdict.symbol + " " : "";
  const label = row.lane && row.lane.target ? row.label + "  (target)" : row.label;
  pen.fillText(fit(sign + label, view.gutter - indent - 8), indent, y + ROW / 2);
  pen.font = FONT;
}

function drawLane(row, y) {
  const node = row.kind === "node", top = y + 3, tall = ROW - 6;
  for (const [a, b, state] of row.lane.spans) {
    const left = x(a), wide = Math.max(1, x(b) - left);
    if (left > view.width || left + wide < view.gutter) continue;
    pen.fillStyle = ink["s-" + state];
    pen.fillRect(left, top, wide, tall);
    const shown = Math.max(left, view.gutter), room = Math.min(left + wide, view.width) - shown - 8;
    const name = NAMES[state] || state;
    if (room > 24 && state !== "ready" && pen.measureText(name).width <= room) {
      pen.fillStyle = ink["s-text"];
      pen.fillText(name, shown + 4, y + ROW / 2);
    }
  }
  pen.fillStyle = ink.taint;
  if (node) for (const [a, b] of row.lane.taints) pen.fillRect(x(a), y + ROW - 4, Math.max(2, x(b) - x(a)), 3);
  for (const blind of blindsOf(row)) hatch(x(blind.start), x(blind.end), y + 1, ROW - 2);
  for (const [at, kind] of row.lane.marks) drawMark(x(at), y, kind);
}

function drawMark(left, y, kind) {
  pen.fillStyle = kind === "gone" ? ink.quiet : ink.violated;
  pen.textAlign = "center";
  pen.fillText(kind === "gone" ? "×" : "▼", left, y + (kind === "gone" ? ROW / 2 : 5));
  pen.textAlign = "start";
}

function hatch(left, right, top, tall) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, Math.max(2, right - left), tall);
  pen.clip();
  pen.strokeStyle = ink.blind;
  pen.beginPath();
  for (let at = Math.max(left, view.gutter) - tall; at < Math.min(right, view.width); at += 5) {
    pen.moveTo(at, top + tall);
    pen.lineTo(at + tall, top);
  }
  pen.stroke();
  pen.restore();
}

// A verdict: the judged time as a band, the deadline as its end, the decision as a diamond.
function drawVerdict(verdict, y) {
  const colour = ink[verdict.status], middle = y + ROW / 2;
  if (verdict.start !== null && verdict.deadline !== null) {
    const left = x(verdict.start), right = x(verdict.deadline);
    pen.globalAlpha = 0.28;
    pen.fillStyle = colour;
    pen.fillRect(left, middle - 3, Math.max(1, right - left), 6);
    pen.globalAlpha = 1;
    pen.fillRect(right - 1, middle - 6, 2, 12);
  }
  if (verdict.at !== null) diamond(x(verdict.at), middle, 5, colour);
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

// The selected verdict: its time as a band across all lanes, its evidence as diamonds.
function drawChosen() {
  const verdict = view.chosen;
  if (!verdict) return;
  plot(() => {
    if (verdict.start !== null && verdict.deadline !== null) {
      pen.fillStyle = ink.band;
      pen.fillRect(x(verdict.start), AXIS, x(verdict.deadline) - x(verdict.start), view.height);
    }
    const places = new Map(rows.map((row, i) => [row.index, i]));
    for (const seq of verdict.evidence) {
      const [t, lane] = data.evidence[seq] || [];
      const row = places.get(lane);
      if (row !== undefined && lane >= 0) diamond(x(t), AXIS + row * ROW - view.scroll + ROW / 2, 5, ink.link);
    }
  });
}

function drawSteps() {
  plot(() => {
    pen.strokeStyle = ink.step;
    pen.fillStyle = ink.step;
    const y = AXIS - view.scroll;
    data.steps.forEach((step, i) => {
      const left = x(step.begin), next = data.steps[i + 1];
      pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(left, AXIS);
      pen.lineTo(left, view.height);
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 0.3;
      pen.fillRect(left, y + 4, Math.max(2, x(step.end) - left), ROW - 8);
      pen.globalAlpha = 1;
      const room = (next ? x(next.begin) : view.width) - left - 10;
      pen.fillText(fit(`${step.name} on ${step.node}`, room), left + 5, y + ROW / 2);
    });
  });
}

function drawAxis() {
  pen.fillStyle = ink.paper;
  pen.fillRect(0, 0, view.width, AXIS);
  pen.fillStyle = ink.quiet;
  pen.strokeStyle = ink.line;
  pen.textAlign = "center";
  const step = tickStep();
  plot(() => {
    for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
      const at = x(k * step);
      pen.fillText(offset(k * step), at, AXIS / 2 - 1);
      pen.fillRect(at, AXIS - 6, 1, 6);
    }
  });
  pen.textAlign = "start";
  pen.fillRect(0, AXIS - 1, view.width, 1);
  pen.fillText("after the first step", 8, AXIS / 2 - 1);
}
