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
