// The panel of evidence. What it shows is in the address (#at-KIND-INDEX), so that the browser's Back goes back.
const panel = document.getElementById("panel");
let opener = null; // has the focus again after the panel is closed
const COLUMNS = JSON.parse(document.getElementById("columns").textContent); // describe_columns of chaos/reports/tables.py

// An element; children are elements or text, never markup.
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

function openItem(item) {
  const key = item.kind === "verdict" ? data.verdicts[item.index].id : item.kind === "entry" ? data.observations.seq[item.index] : item.index;
  if (panel.hidden) opener = document.activeElement;
  location.hash = `at-${item.kind}-${key}`;
}

function closePanel() {
  if (panel.hidden) return;
  history.pushState(null, "", location.pathname + location.search);
  showAddress();
}

// The item that the address names, null for none.
function addressed() {
  const found = /^#at-([a-z]+)-(.+)$/.exec(location.hash);
  if (!found || !Object.hasOwn(WORDS, found[1])) return null;
  const [, kind, key] = found;
  const index = kind === "verdict" ? data.verdicts.findIndex((v) => v.id === key) : kind === "entry" ? data.rowOf.get(Number(key)) ?? -1 : Number(key);
  return index >= 0 && index < sizeOf(kind) ? { kind, index } : null;
}

function sizeOf(kind) {
  const sizes = { verdict: data.verdicts, step: data.steps, undo: data.undo, blind: data.blinds };
  const tables = { entry: data.observations.seq, span: data.spans.start, taint: data.taints.start, mark: data.marks.at };
  return (sizes[kind] || tables[kind]).length;
}

function showAddress() {
  const item = addressed(), wasOpen = !panel.hidden;
  panel.hidden = !item;
  document.body.classList.toggle("has-panel", Boolean(item));
  if (item) {
    fillPanel(item);
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  } else {
    view.lane = undefined;
    if (wasOpen && opener && opener.isConnected) opener.focus({ preventScroll: true });
  }
  redraw();
}

function fillPanel(item) {
  const [title, when, ...lines] = wordsOf(item);
  const back = button("Back", () => history.back()), close = button("Close", closePanel);
  panel.replaceChildren(
    make("p", { class: "buttons" }, back, close),
    make("h3", {}, title), make("p", { class: "sub" }, when),
    ...lines.map((line) => make("p", {}, line)),
    ...DETAILS[item.kind](item.index),
  );
  panel.dataset.item = `${item.kind} ${item.index}`;
  view.lane = laneOfItem(item);
  if (item.kind === "verdict") choose(data.verdicts[item.index].id);
}

function button(text, action) {
  const made = make("button", { type: "button" }, text);
  made.addEventListener("click", action);
  return made;
}

function laneOfItem({ kind, index }) {
  if (kind === "entry") return data.observations.lane[index];
  const table = { span: data.spans, taint: data.taints, mark: data.marks }[kind];
  return table ? lastAt(table.first, index) : undefined;
}

// What the panel shows below the words, by kind of the item.
const DETAILS = {
  span: (i) => [...laneDetails(laneOfItem({ kind: "span", index: i })), ...taintDetails(i), ...entryDetails(data.spans.seq[i])],
  taint: (i) => [...laneDetails(laneOfItem({ kind: "taint", index: i })), ...entryDetails(data.taints.seq[i])],
  mark: (i) => [...laneDetails(laneOfItem({ kind: "mark", index: i })), ...entryDetails(data.marks.seq[i])],
  blind: () => [],
  undo: () => [],
  step: (i) => data.steps[i].items.flatMap(stepDetails),
  verdict: (i) => verdictDetails(data.verdicts[i]),
  entry: (i) => [...laneDetails(data.observations.lane[i]), make("p", { class: "sub" }, clockTime(data.observations.at[i])), changesTable(i)],
};

function laneDetails(lane) {
  if (lane === undefined || lane < 0) return [];
  const owner = ownerOf(lane), node = isNode(lane) ? "" : nodeNameOf(lane);
  const name = make("code", {}, nameOf(lane));
  const where = [owner && `of ${owner}`, node && `on ${node}`].filter(Boolean).join(" ");
  return [make("p", { class: "lane" }, name, " ", make("span", { class: "sub" }, where), button("Show lane", () => showLane(lane)))];
}

function taintDetails(span) {
  const lane = laneOfItem({ kind: "span", index: span }), found = [];
  const { first, start, end, text } = data.taints;
  for (let i = first[lane]; i < first[lane + 1]; i++) {
    if (start[i] < data.spans.end[span] && end[i] > data.spans.start[span]) found.push(make("p", {}, `tainted from ${offset(start[i])}: ${data.strings[text[i]]}`));
  }
  return found;
}

// Goes to the lane's row, even if the filters hide it.
function showLane(lane) {
  if (!rows.some((row) => row.lane === lane)) clearFilters(nameOf(lane));
  const index = rows.findIndex((row) => row.lane === lane);
  if (index < 0) return;
  view.focus = index;
  board.scrollTop = Math.max(0, tops[index] - view.height / 3);
  canvas.focus({ preventScroll: true });
  canvas.scrollIntoView({ block: "nearest" });
  redraw();
}

function entryDetails(seq) {
  const row = data.rowOf.get(seq);
  if (row === undefined) return [make("p", { class: "sub" }, `Entry #${seq} of the recording; its details are not in this page.`)];
  return [entryLink(row), changesTable(row)];
}

function entryLink(row, mark = "") {
  const { seq, at, text } = data.observations;
  const link = make("a", { href: `#at-entry-${seq[row]}` }, `#${seq[row]}`);
  return make("p", { class: mark ? "decided" : "" }, link, ` ${offset(at[row])} ${mark}`, make("span", { class: "sub" }, data.strings[text[row]]));
}

// The fields that differ from the previous version of the object.
function changesTable(row) {
  const { first, path, before, after } = data.changes, lines = [];
  for (let i = first[row]; i < first[row + 1]; i++) {
    const cells = [path, before, after].map((column) => data.strings[column[i]]);
    lines.push(make("tr", {}, make("td", {}, cells[0]), make("td", { class: "before" }, cells[1]), make("td", { class: "after" }, cells[2])));
  }
  if (!lines.length) return noChanges(row);
  const head = make("tr", {}, ...["Field", "Before", "After"].map((name) => make("th", { scope: "col" }, name)));
  return make("table", { class: "changes" }, make("thead", {}, head), make("tbody", {}, ...lines));
}

function noChanges(row) {
  const words = data.observations.isFirst[row] ? "" : "No field differs from the version before.";
  return make("p", { class: "sub" }, words);
}

function stepDetails(item) {
  const parts = [make("h4", {}, item.node || "no node"), make("p", {}, item.text)];
  if (item.command) parts.push(make("p", {}, make("code", {}, item.command)));
  if (item.delivery) parts.push(make("p", { class: "sub" }, item.delivery));
  return [...parts, ...evidenceList(item.evidence, null)];
}

function verdictDetails(verdict) {
  const facts = COLUMNS.facts.filter(([, key]) => verdict[key]);
  const list = make("dl", {}, ...facts.flatMap(([title, key]) => [make("dt", {}, title), make("dd", {}, verdict[key])]));
  const decided = data.rowOf.get(verdict.decided);
  const first = decided === undefined ? momentOf(verdict) : [make("h4", {}, "What decided"), entryLink(decided), changesTable(decided)];
  return [list, ...first, ...evidenceList(verdict.evidence, verdict.decided)];
}

// Without evidence the decision rests on what was not observed: the last changes before it.
function momentOf(verdict) {
  if (verdict.at === null) return [];
  const last = lastAt(data.observations.at, verdict.at), found = [];
  for (let row = last; row >= 0 && found.length < 3; row--) found.push(entryLink(row));
  return [make("h4", {}, "Last observations before the decision"), ...found];
}

const MOST_ENTRIES = 50;

function evidenceList(seqs, decided) {
  const found = seqs.map((seq) => [seq, data.rowOf.get(seq)]).filter(([, row]) => row !== undefined);
  if (!found.length) return [];
  const shown = found.filter(([seq], i) => i < MOST_ENTRIES || seq === decided);
  const more = found.length > shown.length ? [make("p", { class: "sub" }, `and ${found.length - shown.length} more`)] : [];
  return [make("h4", {}, `Evidence (${found.length})`), ...shown.map(([seq, row]) => entryLink(row, seq === decided ? "decided here" : "")), ...more];
}

function choose(id) {
  view.chosen = id;
  for (const row of document.querySelectorAll("tr[data-verdict]")) row.classList.toggle("chosen", row.dataset.verdict === id);
}

// Links of the tables to evidence and verdicts open the panel; without scripts they lead to the footnotes.
function listenToLinks() {
  window.addEventListener("hashchange", showAddress);
  window.addEventListener("popstate", showAddress);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const href = link && link.getAttribute("href");
    const found = href && (/^#e(\d+)$/.exec(href) || /^#((?:steady|hypothesis|abort|recovery)-\d+)$/.exec(href));
    if (!found) return;
    event.preventDefault();
    opener = link;
    location.hash = href.startsWith("#e") ? `at-entry-${found[1]}` : `at-verdict-${found[1]}`;
  });
}

// All observed changes as a list, in portions, when the section is opened.
const PORTION = 200;
let listed = 0;

function listMore() {
  const list = control("observations-list"), { seq } = data.observations;
  const lines = [];
  for (const end = Math.min(seq.length, listed + PORTION); listed < end; listed++) lines.push(entryLink(listed));
  list.querySelector("button")?.remove();
  list.append(...lines);
  if (listed < seq.length) list.append(button(`Show ${Math.min(PORTION, seq.length - listed)} more`, listMore));
}

const observedWords = () => `${data.observations.seq.length} changes${data.omitted ? `; the recording has ${data.omitted} more` : ""}`;

function listenToObservations() {
  control("observed").textContent = observedWords();
  control("observations").addEventListener("toggle", () => { if (!listed) listMore(); });
}
