// The data of a page that grows, from the messages that chaos/reports/run/page/live_page.py describes.
const grown = { order: [], lanes: new Map(), rows: new Map(), charts: [], parts: {} };

// Takes one message, and returns everything so far in the shape of a report's data, with the keys of its lanes.
function grow(message) {
  if (message.whole) Object.assign(grown, { order: [], lanes: new Map(), rows: new Map(), charts: [], parts: {} });
  placeLanes(message.lanes);
  for (const row of message.rows) grown.rows.set(row[0], row);
  for (const seq of message.gone) grown.rows.delete(seq);
  if (message.charts) grown.charts = message.charts.map(grownChart);
  for (const name of ["steps", "undo", "verdicts", "blinds"]) if (message[name]) grown.parts[name] = message[name];
  return assemble(message);
}

// Each lane that is new or moves follows another one, or "" in front of all.
function placeLanes(lanes) {
  const followers = new Map(), moved = new Set();
  for (const [after, lane] of lanes) {
    grown.lanes.set(lane[0], lane);
    if (after === null) continue;
    followers.set(after, lane[0]);
    moved.add(lane[0]);
  }
  if (!moved.size) return;
  const order = [];
  for (const stays of ["", ...grown.order.filter((key) => !moved.has(key))]) {
    for (let key = stays; key !== undefined; key = followers.get(key)) order.push(key);
  }
  grown.order = order.slice(1);
}

function grownChart({ from, of, ...chart }) {
  const joined = (name) => of < 0 ? chart[name] : grown.charts[of][name].slice(0, from).concat(chart[name]);
  return { ...chart, at: joined("at"), value: joined("value") };
}

function assemble({ version, origin, window, now, namespace, states, omitted }) {
  const strings = new Strings(), until = (item, end) => item.end === null ? { ...item, end } : item;
  return {
    version, origin, window, namespace, states, omitted,
    ...laneTables(strings, now),
    ...rowTables(strings),
    strings: strings.all,
    steps: grown.parts.steps,
    undo: grown.parts.undo.map((undo) => until(undo, now)),
    verdicts: grown.parts.verdicts,
    blinds: grown.parts.blinds.map((blind) => until(blind, window[1])),
    charts: grown.charts.map((chart) => ({ ...chart })),
  };
}

class Strings {
  all = [];
  #indexes = new Map();
  add(text) {
    let found = this.#indexes.get(text);
    if (found === undefined) {
      found = this.all.push(text) - 1;
      this.#indexes.set(text, found);
    }
    return found;
  }
}

const columns = (...names) => Object.fromEntries(names.map((name) => [name, []]));

function append(table, ...values) {
  let i = 0;
  for (const name in table) table[name].push(values[i++]);
}

function laneTables(strings, now) {
  const lanes = columns("kind", "name", "short", "owner", "node", "flags", "spans", "taints", "marks");
  const spans = columns("start", "end", "state", "text", "seq"), taints = columns("start", "end", "text", "seq");
  const marks = columns("at", "kind", "text", "seq"), nodes = new Map();
  grown.order.forEach((key, i) => { if (grown.lanes.get(key)[1] === NODE) nodes.set(key, i); });
  for (const laneKey of grown.order) {
    const [, kind, name, short, owner, node, flags, states, tainted, marked] = grown.lanes.get(laneKey);
    const texts = [name, short, owner].map((text) => strings.add(text));
    append(lanes, kind, ...texts, nodes.get(node) ?? -1, flags, states.length, tainted.length, marked.length);
    for (const [start, end, state, text, seq] of states) append(spans, start, end ?? now, state, strings.add(text), seq);
    for (const [start, end, text, seq] of tainted) append(taints, start, end ?? now, strings.add(text), seq);
    for (const [at, what, text, seq] of marked) append(marks, at, what, strings.add(text), seq);
  }
  return { lanes, spans, taints, marks };
}

function rowTables(strings) {
  const observations = columns("seq", "at", "kind", "lane", "text", "isFirst", "changes");
  const changes = columns("path", "before", "after"), places = new Map(grown.order.map((key, i) => [key, i]));
  for (const [seq, at, kind, lane, text, isFirst, found] of [...grown.rows.values()].sort((a, b) => a[0] - b[0])) {
    append(observations, seq, at, strings.add(kind), places.get(lane) ?? -1, strings.add(text), isFirst, found.length);
    for (const change of found) append(changes, ...change.map((part) => strings.add(part)));
  }
  return { observations, changes };
}
