"use strict";
document.documentElement.classList.add("scripts"); // shows the parts that need scripts
for (const part of document.querySelectorAll(".scripted")) part.hidden = false; // hidden without a style, too
// The data of the page, in the shape that chaos/reports/run/page/page_data.py describes.
const CONTRACT = 2;
const TARGET = 1, CHANGED = 2, AFFECTED = 4;
const NODE = 0, GONE = 1;
let data = null;

async function unpack() {
  data = withTypedColumns(await unpacked(document.getElementById("data").textContent));
}

// The value of chaos/reports/run/page/page_data.py pack(), if it has the version of this script.
async function unpacked(text) {
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const found = await new Response(stream).json();
  if (found.version !== CONTRACT) throw new Error(`the data has version ${found.version}, not ${CONTRACT}`);
  return found;
}

function withTypedColumns(found) {
  for (const table of [found.spans, found.taints]) {
    table.start = Float64Array.from(table.start);
    table.end = Float64Array.from(table.end);
  }
  found.spans.state = Uint8Array.from(found.spans.state);
  found.lanes.count = found.lanes.kind.length;
  for (const name of ["spans", "taints", "marks"]) found[name].first = firsts(found.lanes[name]);
  found.changes.first = firsts(found.observations.changes);
  found.rowOf = new Map(found.observations.seq.map((seq, row) => [seq, row]));
  return found;
}

// Where the rows of each owner begin in a table, from how many each owns; the last element is the end.
function firsts(counts) {
  const first = new Uint32Array(counts.length + 1);
  counts.forEach((count, i) => { first[i + 1] = first[i] + count; });
  return first;
}

const nameOf = (lane) => data.strings[data.lanes.name[lane]];
const shortOf = (lane) => data.strings[data.lanes.short[lane]];
const ownerOf = (lane) => data.strings[data.lanes.owner[lane]];
const isNode = (lane) => data.lanes.kind[lane] === NODE;
const hasFlag = (lane, flag) => (data.lanes.flags[lane] & flag) !== 0;
const nodeNameOf = (lane) => data.lanes.node[lane] < 0 ? "" : nameOf(data.lanes.node[lane]);

// Words for times, states and items: for the tip, for screen readers and for the panel.

function offset(t) {
  const sign = t < 0 ? "-" : "+", rounded = Math.round(Math.abs(t) / 10) / 100;
  const hours = Math.floor(rounded / 3600), minutes = Math.floor(rounded / 60) % 60;
  const seconds = Math.round((rounded % 60) * 100) / 100;
  const parts = `${hours ? `${hours}h` : ""}${minutes ? `${minutes}m` : ""}`;
  return `${sign}${parts}${seconds || !parts ? `${seconds}s` : ""}`;
}

const duration = (ms) => offset(Math.abs(ms)).slice(1);
const clockTime = (t) => new Date(data.origin * 1000 + t).toISOString().replace("T", " ").replace("Z", " UTC");
const stateName = (state) => STATE_NAMES[data.states[state]] || data.states[state];

const statusWords = (status) => status === "known" ? "violated, as known" : status;

// Lines that describe an item; the first one is its title.
function wordsOf(item) {
  return WORDS[item.kind](item.index);
}

const WORDS = {
  span(i) {
    const { start, end, text, state } = data.spans;
    return [`${stateName(state[i])} for ${duration(end[i] - start[i])}`, `${offset(start[i])} to ${offset(end[i])}`, data.strings[text[i]]];
  },
  taint(i) {
    const { start, end, text } = data.taints;
    return [`tainted for ${duration(end[i] - start[i])}`, `${offset(start[i])} to ${offset(end[i])}`, data.strings[text[i]]];
  },
  mark(i) { return [data.strings[data.marks.text[i]], offset(data.marks.at[i])]; },
  blind(i) {
    const blind = data.blinds[i];
    return [blind.kind === UNNOTICED ? UNNOTICED : "blind", `${offset(blind.start)} to ${offset(blind.end)}`, blind.text];
  },
  step(i) {
    const step = data.steps[i];
    return [stepLabel(step), `${step.action}, ${offset(step.begin)} to ${offset(step.end)}`, ...(step.count === 1 ? [step.items[0].text] : [])];
  },
  undo(i) {
    const undo = data.undo[i];
    return [`undo of ${undo.step}`, `${undo.node} ${offset(undo.begin)} to ${offset(undo.end)}`];
  },
  verdict(i) {
    const verdict = data.verdicts[i];
    const times = [["decided", verdict.at], ["due", verdict.deadline]].filter(([, t]) => t !== null).map(([word, t]) => `${word} ${offset(t)}`);
    return [`${verdict.symbol} ${statusWords(verdict.status)}: ${verdict.name}`, times.join(", "), verdict.because];
  },
  entry(i) {
    const { at, kind, text, seq } = data.observations;
    return [`#${seq[i]} ${data.strings[kind[i]]}`, offset(at[i]), data.strings[text[i]]];
  },
};

// Which lanes are shown: by what happened, by search, node, owner and state.
let haystacks = null;

function haystack(lane) {
  haystacks ??= new Array(data.lanes.count);
  return haystacks[lane] ??= `${nameOf(lane)} ${ownerOf(lane)} ${nodeNameOf(lane)}`.toLowerCase();
}

const isNarrowed = () => Boolean(view.search || view.node !== "" || view.owner !== "" || view.state !== "");

function hadState(lane, state) {
  const { first, state: states } = data.spans;
  for (let i = first[lane]; i < first[lane + 1]; i++) if (states[i] === state) return true;
  return false;
}

// Whether something happened on a lane that the choice "Show" includes.
function happened(lane) {
  if (view.show === "all") return true;
  return hasFlag(lane, view.show === "affected" ? AFFECTED : CHANGED);
}

// A predicate for lanes: search, node, owner and state, without "Show".
function narrowing() {
  const words = view.search.toLowerCase().split(/\s+/).filter(Boolean);
  const node = view.node === "" ? null : Number(view.node), owner = view.owner === "" ? null : Number(view.owner);
  const state = view.state === "" ? null : data.states.indexOf(view.state);
  return (lane) =>
    (node === null || data.lanes.node[lane] === node) &&
    (owner === null || data.lanes.owner[lane] === owner) &&
    (state === null || hadState(lane, state)) &&
    words.every((word) => haystack(lane).includes(word));
}
