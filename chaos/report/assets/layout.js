"use strict";
document.documentElement.classList.add("scripts"); // shows the parts that need scripts
// Data, view and rows. Times are seconds after the first step.
const data = JSON.parse(document.getElementById("data").textContent);
const AXIS = 30, ROW = 20, LEAST_SECONDS = 0.2;
const span = Math.max(1, data.end - data.start);
const full = { from: data.start - span * 0.01, to: data.end + span * 0.02 };
const view = { ...full, width: 0, height: 0, gutter: 0, scroll: 0, allPods: false, chosen: null };
let rows = [];

// One row per step list, verdict and lane; nodes stand before their pods.
function layout() {
  rows = data.steps.length ? [{ kind: "steps", label: "steps" }] : [];
  for (const verdict of data.verdicts) {
    if (verdict.deadline !== null || verdict.at !== null) rows.push({ kind: "verdict", label: verdict.name, verdict });
  }
  data.lanes.forEach((lane, index) => {
    if (lane.kind === "node" || lane.changed || view.allPods) rows.push({ kind: lane.kind, label: lane.name, lane, index });
  });
}

const x = (t) => view.gutter + (t - view.from) / (view.to - view.from) * (view.width - view.gutter);
const time = (px) => view.from + (px - view.gutter) / (view.width - view.gutter) * (view.to - view.from);
const total = () => AXIS + rows.length * ROW + 6;

function offset(t) {
  const sign = t < 0 ? "-" : "+", rounded = Math.round(Math.abs(t) * 10) / 10;
  const minutes = Math.floor(rounded / 60), seconds = Math.round((rounded - minutes * 60) * 10) / 10;
  return minutes ? `${sign}${minutes}m${seconds ? seconds + "s" : ""}` : `${sign}${seconds}s`;
}

// A round step that leaves at least 80 pixels between ticks.
function tickStep() {
  const wanted = (view.to - view.from) * 80 / Math.max(80, view.width - view.gutter);
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
  return steps.find((step) => step >= wanted) || Math.ceil(wanted / 3600) * 3600;
}

function zoom(factor, around) {
  const size = Math.min(full.to - full.from, Math.max(LEAST_SECONDS, (view.to - view.from) * factor));
  const share = (around - view.from) / (view.to - view.from);
  moveTo(around - share * size, size);
}

function moveTo(from, size) {
  view.from = Math.min(Math.max(from, full.from), full.to - size);
  view.to = view.from + size;
}

// Blind windows of a row: of all nodes, of all pods, of one node's host, or of everything (a truncated recording).
function blindsOf(row) {
  if (!row.lane) return [];
  return data.blinds.filter((blind) =>
    blind.node ? row.kind === "node" && blind.node === row.lane.name : [row.kind + "s", "recording"].includes(blind.kind));
}

// Description of the item under the pointer, "" without one.
function describe(px, py) {
  const row = rows[Math.floor((py - AXIS + view.scroll) / ROW)];
  if (py < AXIS || !row) return "";
  const t = time(px), near = (view.to - view.from) / (view.width - view.gutter) * 5;
  const inside = (a, b) => t >= a - near / 2 && t <= b + near / 2;
  if (px < view.gutter) return row.label + (row.verdict ? "\n" + row.verdict.because : "");
  if (row.kind === "steps") {
    return data.steps.filter((s) => inside(s.begin, Math.max(s.end, s.begin + near * 8)))
      .map((s) => `${s.name} ${offset(s.begin)}\n${s.text}`).join("\n");
  }
  if (row.verdict) {
    const v = row.verdict, due = v.deadline === null ? "" : `\ndue ${offset(v.deadline)}`;
    return `${v.symbol} ${v.status}: ${v.name}\n${v.because}${v.at === null ? "" : "\ndecided " + offset(v.at)}${due}`;
  }
  const lane = row.lane, lines = [];
  for (const [at, , text] of lane.marks) if (Math.abs(at - t) < near) lines.push(`${offset(at)} ${text}`);
  for (const [a, b, , text] of lane.spans) if (t >= a && t < b) lines.push(`${offset(a)} to ${offset(b)}: ${text}`);
  for (const [a, b, , text] of lane.taints) if (t >= a && t < b) lines.push(`tainted from ${offset(a)}: ${text}`);
  for (const blind of blindsOf(row)) if (inside(blind.start, blind.end)) lines.push(blind.text);
  return lines.length ? `${lane.name} at ${offset(t)}\n${lines.join("\n")}` : "";
}
