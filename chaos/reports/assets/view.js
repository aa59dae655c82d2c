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

// Rows of the timeline: steps, verdicts, charts, and lanes by node or by owner. A fold stands for rows that it hides.
let rows = [], tops = new Float64Array(1), shownLanes = 0;
const FEW_VERDICTS = 6, FEW_CHARTS = 2;

function layout() {
  rows = [];
  shownLanes = 0;
  if (data.steps.length || data.undo.length) rows.push({ kind: "steps", label: "steps" });
  addVerdicts();
  addCharts();
  (view.group === "owner" ? addByOwner : addByNode)();
  measureRows();
}

function measureRows() {
  tops = new Float64Array(rows.length + 1);
  rows.forEach((row, i) => { tops[i + 1] = tops[i] + (row.kind === "chart" ? CHART : ROW); });
  view.focus = Math.min(view.focus, rows.length - 1);
}

function addVerdicts() {
  const timed = data.verdicts.filter((v) => v.deadline !== null || v.at !== null);
  const first = timed.filter((v, i) => i < FEW_VERDICTS || v.status !== "held");
  const rest = timed.slice(first.length);
  for (const verdict of first) rows.push({ kind: "verdict", label: verdict.name, verdict });
  addFold("verdicts", rest.map((verdict) => ({ kind: "verdict", label: verdict.name, verdict })), "expectations held");
}

function addCharts() {
  const all = data.charts.map((chart) => ({ kind: "chart", label: chart.name, chart }));
  rows.push(...all.slice(0, FEW_CHARTS));
  addFold("charts", all.slice(FEW_CHARTS), "charts");
}

// Adds rows behind a fold, which is drawn open or closed.
function addFold(key, hidden, words) {
  if (!hidden.length) return;
  const open = view.open.has(key);
  const noun = hidden.length === 1 ? words.replace(/^(\w+)s\b|^(other \w+)s\b/, "$1$2") : words;
  rows.push({ kind: "fold", label: `${open ? "▾" : "▸"} ${hidden.length} ${noun}`, key });
  if (!open) return;
  rows.push(...hidden);
  shownLanes += hidden.filter((row) => row.lane !== undefined).length;
}

function addLane(lane, label = shortOf(lane)) {
  rows.push(laneRow(lane, label));
  shownLanes += 1;
}

function laneRow(lane, label = shortOf(lane)) { return { kind: isNode(lane) ? "node" : "pod", label, lane }; }

// Nodes with their pods. Pods and nodes on which nothing happened are folded.
function addByNode() {
  const matches = narrowing(), quiet = [];
  for (const [node, pods] of nodeGroups()) {
    const found = pods.filter(matches);
    const active = found.filter((lane) => happened(lane) && (view.show === "all" || hasFlag(lane, CHANGED)));
    const own = node >= 0 && matches(node);
    if (!active.length && !(own && hasFlag(node, CHANGED) && happened(node))) {
      if (own) quiet.push(node);
      if (isNarrowed()) found.forEach((lane) => addLane(lane));
      continue;
    }
    if (node >= 0) addLane(node); else rows.push({ kind: "heading", label: "not scheduled" });
    for (const lane of isNarrowed() ? found : active.filter((lane) => hasFlag(lane, CHANGED))) addLane(lane);
    if (!isNarrowed()) addFold(`pods-${node}`, found.filter((l) => !hasFlag(l, CHANGED)).map((l) => laneRow(l)), "pods without changes");
  }
  addQuietNodes(quiet);
}

function addQuietNodes(quiet) {
  if (quiet.length <= 3 || isNarrowed()) quiet.forEach((lane) => addLane(lane));
  else addFold("nodes", quiet.map((lane) => laneRow(lane)), view.show === "all" ? "nodes without changes" : "other nodes");
}

// [lane of the node or -1, lanes of its pods], in the order of the lanes.
function nodeGroups() {
  const groups = new Map();
  for (let lane = 0; lane < data.lanes.count; lane++) {
    const node = isNode(lane) ? lane : data.lanes.node[lane];
    if (!groups.has(node)) groups.set(node, []);
    if (!isNode(lane)) groups.get(node).push(lane);
  }
  return groups;
}

// Nodes first, then each owner with its pods in the order of their first observation.
function addByOwner() {
  const matches = narrowing(), owners = new Map();
  for (let lane = 0; lane < data.lanes.count; lane++) {
    if (!matches(lane) || !happened(lane)) continue;
    if (isNode(lane)) { addLane(lane); continue; }
    const owner = ownerOf(lane) || "without owner";
    if (!owners.has(owner)) owners.set(owner, []);
    owners.get(owner).push(lane);
  }
  const begin = (lane) => data.spans.start[data.spans.first[lane]];
  for (const [owner, pods] of [...owners].sort(([a], [b]) => a < b ? -1 : 1)) {
    rows.push({ kind: "heading", label: owner });
    const changed = pods.filter((lane) => hasFlag(lane, CHANGED)).sort((a, b) => begin(a) - begin(b));
    for (const lane of changed) addLane(lane, `${shortOf(lane)} · ${nodeNameOf(lane)}`);
    addFold(`owner-${owner}`, pods.filter((l) => !hasFlag(l, CHANGED)).map((l) => laneRow(l)), "pods without changes");
  }
}

const totalHeight = () => AXIS + tops[rows.length] + 6;
const topOf = (row) => AXIS + tops[row] - view.scroll;

// The row at a position of the canvas, -1 for none.
function rowAt(py) {
  const y = py - AXIS + view.scroll;
  if (py < AXIS || y >= tops[rows.length]) return -1;
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= y) low = middle; else high = middle - 1;
  }
  return rows.length ? low : -1;
}

// Which item is at a position, or at a time of a row: {kind, index, row}; kinds as in words.js.

function itemAt(px, py) {
  const index = rowAt(py);
  if (index < 0) return null;
  const row = rows[index];
  if (px < view.gutter) return row.verdict ? verdictItem(row) : null;
  return itemOf(row, timeAt(px), perPixel() * 6);
}

const verdictItem = (row) => ({ kind: "verdict", index: data.verdicts.indexOf(row.verdict), row });

// The item of a row nearest to t, at most `near` milliseconds away. Marks lie on bars and come first.
function itemOf(row, t, near) {
  if (row.verdict) return verdictItem(row);
  if (row.kind === "steps") return stepItem(row, t, near);
  if (row.lane === undefined) return null;
  const lane = row.lane;
  const mark = nearest(data.marks, lane, t, near);
  if (mark >= 0) return { kind: "mark", index: mark, row };
  const blind = data.blinds.findIndex((b) => blindsOf(lane).includes(b) && t >= b.start && t <= b.end);
  const span = spanAt(lane, t);
  if (blind >= 0 && (span < 0 || data.blinds[blind].kind === UNNOTICED)) return { kind: "blind", index: blind, row };
  return span < 0 ? null : { kind: "span", index: span, row };
}

function nearest(table, lane, t, near) {
  let found = -1, distance = near;
  for (let i = table.first[lane]; i < table.first[lane + 1]; i++) {
    const away = Math.abs(table.at[i] - t);
    if (away <= distance) { found = i; distance = away; }
  }
  return found;
}

function stepItem(row, t, near) {
  const covers = (item) => t >= item.begin - near && t <= Math.max(item.end, item.begin + near * 8);
  const undo = data.undo.findIndex(covers);
  if (undo >= 0) return { kind: "undo", index: undo, row };
  const step = data.steps.findLastIndex(covers);
  return step < 0 ? null : { kind: "step", index: step, row };
}
