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

// What somebody looks at stays in view when lanes are added: indexes into the data become those of the new data.
let keys = []; // of the lanes, by index

// What the view shows, named by what does not change.
function remembered() {
  const item = panel.hidden ? null : addressed();
  return {
    keys,
    tables: { span: data.spans, taint: data.taints, mark: data.marks },
    all: showsAll(),
    owner: view.owner === "" ? null : data.strings[view.owner],
    focus: rows[view.focus] && rowName(rows[view.focus], keys),
    item, words: item && wordsOf(item).join("\n"),
  };
}

const rowName = (row, of) => row.lane !== undefined ? `lane ${of[row.lane]}` : row.verdict ? `verdict ${row.verdict.id}` : row.chart ? `chart ${row.label}` : `${row.kind} ${row.key || row.label}`;

function keepView(before) {
  const places = new Map(keys.map((key, i) => [key, i]));
  const place = (lane) => places.get(before.keys[lane]);
  measureTime();
  if (before.all) moveTo(full.from, full.to - full.from); else moveTo(view.from, view.to - view.from);
  if (view.node !== "") view.node = String(place(Number(view.node)) ?? "");
  if (before.owner !== null) view.owner = String(Math.max(0, data.strings.indexOf(before.owner)));
  if (view.lane !== undefined) view.lane = place(view.lane);
  view.open = new Set([...view.open].map((key) => key.replace(/^pods-(\d+)$/, (_, lane) => `pods-${place(Number(lane))}`)));
  keepChoices();
  refresh();
  if (before.focus) view.focus = rows.findIndex((row) => rowName(row, keys) === before.focus);
  if (before.item) keepPanel(before, place);
}

// Nodes and owners to choose from; only if they have changed, as a list that is open would close.
function keepChoices() {
  for (const [id, options] of Object.entries(choices())) {
    const had = [...control(id).options].slice(1).map((option) => `${option.value} ${option.text}`).join("\n");
    if (had !== options.map(([value, text]) => `${value} ${text}`).join("\n")) {
      control(id).replaceChildren(control(id).options[0]);
      addOptions(id, options);
    }
    control(id).value = view[FILTERS[id]];
  }
}

// The address names bars and marks by their index in the data.
function keepPanel(before, place) {
  const { kind, index } = before.item, table = before.tables[kind];
  let now = index;
  if (table) {
    const lane = lastAt(table.first, index);
    now = { span: data.spans, taint: data.taints, mark: data.marks }[kind].first[place(lane)] + index - table.first[lane];
    history.replaceState(null, "", `#at-${kind}-${now}`);
  } else if (kind === "entry" || kind === "verdict") {
    now = addressed()?.index ?? index;
  }
  panel.dataset.item = `${kind} ${now}`;
  if (wordsOf({ kind, index: now }).join("\n") !== before.words && !panel.contains(document.activeElement)) fillPanel({ kind, index: now });
}

// A page that follows a run: messages of the server draw it, and the end of the run makes it the final report.
let queue = Promise.resolve(), hasChosenShow = false, heard = false;

function fail(error) {
  document.body.dataset.error = String(error && error.message || error);
  showConnection("broken", `This page has failed: ${document.body.dataset.error}`);
}

// The connection, in a word for the style and a sentence for people.
function showConnection(state, words) {
  document.body.dataset.connection = state;
  control("connection").textContent = words;
}

function takeMessage(message) {
  const before = data && remembered();
  data = withTypedColumns(grow(message));
  keys = grown.order;
  haystacks = histogram = null;
  if (before) keepView(before); else begin();
  if (!hasChosenShow) showWhatHappened();
  listExpectations();
  control("observed").textContent = observedWords();
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
}

function begin() {
  control("waiting").hidden = true;
  resetView();
  fillChoices();
  for (const listen of [listenToPointer, listenToMinimap, listenToKeys, listenToControls, listenToLinks, listenToObservations]) listen();
  control("show").addEventListener("change", () => { hasChosenShow = true; });
  showWhatHappened();
  refresh();
  draw();
  showAddress();
  document.body.dataset.drawn = "true";
}

// All changes until the fault affects lanes, then those, unless somebody has chosen.
function showWhatHappened() {
  const before = view.show;
  chooseShow();
  if (view.show !== before) refresh();
}

// What the server says about the run itself.
function takeState(state) {
  document.title = `${state.phase} · ${state.experiment}`;
  control("experiment").textContent = [state.experiment, state.cluster].filter(Boolean).join(" on ");
  control("phase").textContent = state.phase;
  control("note").textContent = state.note;
  control("stop").disabled = state.stop !== "ready";
  control("stop").textContent = state.stop === "asked" ? "Stopping…" : "Stop and undo";
}

// Parts of a cell, by the shape of their column; text for all others.
const SHAPES = {
  badge: (verdict, key) => make("span", { class: `badge ${verdict.status}` }, verdict[key]),
  item: (verdict, key) => make("a", { href: `#at-verdict-${verdict.id}` }, verdict[key]),
  sub: (verdict, key) => make("span", { class: "sub" }, verdict[key]),
  text: (verdict, key) => verdict[key],
  until: (verdict, key) => untilWords(verdict, verdict[key]),
};

function listExpectations() {
  const cell = (verdict, parts) => make("td", {}, ...parts.map(([shape, key]) => (SHAPES[shape] ?? SHAPES.text)(verdict, key)));
  const lines = data.verdicts.map((verdict) => make("tr", {}, ...COLUMNS.table.map(([, parts]) => cell(verdict, parts))));
  const counts = ["violated", "inconclusive", "pending", "known", "held"].map((status) => [status, data.verdicts.filter((verdict) => verdict.status === status).length]);
  control("counts").textContent = counts.filter(([, count]) => count).map(([status, count]) => `${count} ${statusWords(status)}`).join(", ");
  const worst = counts.find(([, count]) => count);
  document.querySelector("header").className = worst && !["known", "held"].includes(worst[0]) ? worst[0] : "";
  control("expectations").querySelector("tbody").replaceChildren(...lines);
}

// A pending expectation with the time that it has left.
function untilWords(verdict, because) {
  if (verdict.status !== "pending" || verdict.deadline === null) return because;
  const left = verdict.deadline - data.window[1];
  return left > 0 ? `${duration(Math.round(left / 1000) * 1000)} left: ${because}` : because;
}

function listenToStop() {
  const dialog = control("stop-dialog");
  control("stop").addEventListener("click", () => dialog.showModal());
  control("stop-no").addEventListener("click", () => dialog.close());
  control("stop-yes").addEventListener("click", () => { dialog.close(); stop().catch(fail); });
}

async function stop() {
  control("stop").disabled = true;
  const answer = await fetch("stop", { method: "POST" }).catch(() => null);
  if (answer?.ok) return;
  control("stop").disabled = false; // it may be pressed again
  control("note").textContent = `Not stopped: ${answer ? await answer.text() : "no connection"}`;
}

// One after the other, as a whole page takes time to unpack.
function then(action) {
  queue = queue.then(action).catch(fail);
}

function listenToServer() {
  const source = new EventSource("events");
  const listen = (name, take) => source.addEventListener(name, (event) => then(() => take(event.data)));
  listen("whole", async (text) => takeMessage(await unpacked(text)));
  listen("more", (text) => takeMessage(JSON.parse(text)));
  listen("state", (text) => takeState(JSON.parse(text)));
  listen("end", (text) => {
    source.close();
    const { report, words } = JSON.parse(text);
    if (report) location.reload(); // the final report is at the same address now
    else { control("stop").disabled = true; showConnection("lost", words); }
  });
  source.addEventListener("open", () => { heard = true; showConnection("live", "live"); });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) showConnection("lost", heard ? "The connection was refused: open the address again." : "Not admitted: open the address that nodefall printed.");
    else showConnection("lost", "No connection: the run may have ended; its report is in its directory. Trying again.");
  });
}

window.addEventListener("error", (event) => fail(event.error || event.message));
listenToStop();
listenToServer();
