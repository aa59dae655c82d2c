// Lanes: states as bars, taints as lines below, deletions and disruptions as marks, blind windows hatched.

// Index of the first row of a lane's part of a table that ends after t.
function firstVisible(table, lane, t) {
  let low = table.first[lane], high = table.first[lane + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table.end[middle] <= t) low = middle + 1; else high = middle;
  }
  return low;
}

function drawLane(lane, y) {
  drawSpans(lane, y);
  drawTaints(lane, y);
  // A host that cannot be reached hides nothing of the node's own state: a thin line.
  for (const blind of blindsOf(lane)) {
    const unnoticed = blind.kind === UNNOTICED;
    hatch(x(blind.start), x(blind.end), y + 1, blind.node && !unnoticed ? 4 : ROW - 2, unnoticed ? "violated" : "blind");
  }
  const { first, at, kind } = data.marks;
  for (let i = first[lane]; i < first[lane + 1]; i++) drawMark(x(at[i]), y, kind[i]);
}

function drawSpans(lane, y) {
  const { first, start, end, state } = data.spans;
  let drawn = -1;
  for (let i = firstVisible(data.spans, lane, view.from); i < first[lane + 1] && start[i] <= view.to; i++) {
    const left = Math.max(x(start[i]), view.gutter), right = Math.min(x(end[i]), view.width);
    if (right <= drawn && right - left < 1) continue; // not even one more pixel
    drawn = Math.max(left + 1, right);
    pen.fillStyle = ink(`s-${data.states[state[i]]}`);
    pen.fillRect(left, y + 3, Math.max(1, right - left), ROW - 6);
    nameState(data.states[state[i]], left, right, y);
  }
}

function nameState(state, left, right, y) {
  const name = STATE_NAMES[state] || state;
  if (state === "ready" || right - left < 32 || widthOf(name) > right - left - 8) return;
  pen.fillStyle = ink("s-text");
  pen.fillText(name, left + 4, y + ROW / 2);
}

function drawTaints(lane, y) {
  const { first, start, end } = data.taints;
  pen.fillStyle = ink("taint");
  for (let i = first[lane]; i < first[lane + 1]; i++) pen.fillRect(x(start[i]), y + ROW - 4, Math.max(2, x(end[i]) - x(start[i])), 3);
}

function drawMark(left, y, kind) {
  if (left < view.gutter || left > view.width) return;
  pen.fillStyle = ink(kind === GONE ? "quiet" : "violated");
  pen.textAlign = "center";
  pen.fillText(kind === GONE ? "×" : "▼", left, y + (kind === GONE ? ROW / 2 : 5));
  pen.textAlign = "start";
}

// Times at which a machine was off though its node, or pods on it, were reported Ready.
const UNNOTICED = "unnoticed";

// Blind windows of a lane: of all nodes, of all pods, of one node's host, or of everything (a truncated recording).
function blindsOf(lane) {
  const kinds = isNode(lane) ? ["nodes", "recording"] : ["pods", "recording"];
  return data.blinds.filter((b) => b.node ? isNode(lane) && b.node === nameOf(lane) : kinds.includes(b.kind));
}

// Verdicts: the judged time as a bar, the deadline as its end, the decision as a diamond. Steps and undos.

function drawVerdict(verdict, y) {
  const colour = ink(verdict.status), middle = y + ROW / 2;
  if (verdict.start !== null && verdict.deadline !== null) {
    const left = x(verdict.start), right = x(verdict.deadline);
    pen.fillStyle = colour;
    pen.globalAlpha = 0.28;
    pen.fillRect(left, middle - 3, Math.max(1, right - left), 6);
    pen.globalAlpha = 1;
    pen.fillRect(right - 1, middle - 6, 2, 12);
  }
  if (verdict.at !== null) diamond(x(verdict.at), middle, 5, colour);
}

const chosenVerdict = () => data.verdicts.find((verdict) => verdict.id === view.chosen) || null;

// The time of the chosen verdict as a band across all lanes, its evidence as diamonds on theirs.
function drawChosen() {
  const verdict = chosenVerdict();
  if (!verdict) return;
  if (verdict.start !== null && verdict.deadline !== null) {
    pen.fillStyle = ink("band");
    pen.fillRect(x(verdict.start), AXIS, x(verdict.deadline) - x(verdict.start), view.height);
  }
  const places = new Map();
  for (const seq of verdict.evidence) {
    const row = data.rowOf.get(seq);
    if (row !== undefined) places.set(seq, [data.observations.lane[row], data.observations.at[row]]);
  }
  const visible = visibleRows();
  for (const [seq, [lane, at]] of places) {
    const place = visible.find((i) => rows[i].lane === lane);
    if (lane >= 0 && place !== undefined) diamond(x(at), topOf(place) + ROW / 2, seq === verdict.decided ? 7 : 5, ink("link"));
  }
}

function drawSteps(y) {
  for (const step of data.steps) {
    const left = x(step.begin);
    pen.fillStyle = ink("step");
    pen.globalAlpha = 0.3;
    pen.fillRect(left, y + 4, Math.max(2, x(step.end) - left), ROW - 8);
    pen.globalAlpha = 1;
  }
  for (const undo of data.undo) hatch(x(undo.begin), x(undo.end), y + 2, ROW - 4);
  nameSteps(y);
}

// A name beside each step and undo, if it ends before the next one begins.
function nameSteps(y) {
  const steps = data.steps.map((step) => ({ begin: step.begin, left: x(step.begin) + 5, names: [stepLabel(step), step.name] }));
  const undos = data.undo.map((undo) => ({ begin: undo.begin, left: x(undo.end) + 4, names: [`undo of ${undo.step}`, "undo"] }));
  const found = [...steps, ...undos].sort((a, b) => a.begin - b.begin);
  pen.fillStyle = ink("step");
  found.forEach(({ left, names }, i) => {
    const room = (i + 1 < found.length ? x(found[i + 1].begin) : view.width) - left - 4;
    const name = names.find((text) => widthOf(text) <= room);
    if (name) pen.fillText(name, left, y + ROW / 2);
  });
}

function stepLabel(step) {
  return step.count === 1 ? `${step.name} ${step.items[0].node}` : `${step.name} x${step.count}, ${step.proven} proven`;
}

// A dashed line through all lanes for the start of each step and undo.
function drawStepLines() {
  pen.lineWidth = 1;
  pen.setLineDash([4, 3]);
  for (const [items, colour] of [[data.steps, "step"], [data.undo, "blind"]]) {
    pen.strokeStyle = ink(colour);
    pen.beginPath();
    for (const item of items) {
      pen.moveTo(x(item.begin), AXIS);
      pen.lineTo(x(item.begin), view.height);
    }
    pen.stroke();
  }
  pen.setLineDash([]);
}

// Charts of counts: values as a line, bounds as dashed lines with their names.

// The values of the axis: from 0, unless all values lie in a small range far from it.
function rangeOf(chart) {
  let low = Infinity, high = -Infinity;
  for (const value of [...chart.value, ...chart.bounds.map((bound) => bound[1])]) {
    if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  if (low > high) return [0, 1];
  const spread = high - low;
  if (low > 0 && (spread === 0 || spread > high / 5)) return [0, high];
  if (low > 0) return [low - spread, high];
  return [low, spread > 0 ? high : low + 1];
}

// The least and the greatest value, null without any.
function extremes(chart) {
  const known = chart.value.filter((value) => value !== null);
  return known.length ? [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))] : null;
}

function drawChart(chart, top) {
  const [low, high] = chart.range ??= rangeOf(chart);
  const y = (value) => top + 8 + (high - value) / (high - low) * (CHART - 16);
  drawBounds(chart, y);
  pen.strokeStyle = ink("chart");
  pen.lineWidth = 1.5;
  pen.beginPath();
  traceValues(chart, y);
  pen.stroke();
  pen.lineWidth = 1;
}

function traceValues(chart, y) {
  const first = Math.max(0, lastAt(chart.at, view.from));
  let before = null;
  for (let i = first; i < chart.at.length && (i === first || chart.at[i - 1] <= view.to); i++) {
    const value = chart.value[i], left = x(chart.at[i]);
    if (value !== null) {
      if (before === null) pen.moveTo(left, y(value));
      else if (chart.step) pen.lineTo(left, y(before));
      pen.lineTo(left, y(value));
    }
    before = value;
  }
  if (chart.step && before !== null) pen.lineTo(x(data.window[1]), y(before));
}

function drawBounds(chart, y) {
  pen.strokeStyle = ink("quiet");
  pen.fillStyle = ink("quiet");
  pen.setLineDash([2, 3]);
  for (const [, value] of chart.bounds) {
    pen.beginPath();
    pen.moveTo(view.gutter, Math.round(y(value)) + 0.5);
    pen.lineTo(view.width, Math.round(y(value)) + 0.5);
    pen.stroke();
  }
  pen.setLineDash([]);
}

// Second line of a chart's name: its least and greatest value, and its bounds.
function chartSummary(chart) {
  const unit = chart.unit ? ` ${chart.unit}` : "";
  const found = chart.extremes ??= extremes(chart);
  const bounds = chart.bounds.map(([label, value]) => `${label === "of" ? "" : ","} ${label} ${shortNumber(value)}`).join("");
  if (!found) return `no values${bounds}`;
  const [low, high] = found.map(shortNumber);
  return `${low === high ? low : `${low} to ${high}`}${unit}${bounds}`;
}

const shortNumber = (value) => String(Number(value.toPrecision(4)));

// Index of the last point at or before t, -1 before the first.
function lastAt(times, t) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function valueAt(chart, t) {
  const index = lastAt(chart.at, t);
  return index < 0 ? null : chart.value[index];
}
