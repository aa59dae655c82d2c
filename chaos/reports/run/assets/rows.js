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
