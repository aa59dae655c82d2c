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
  if (blind >= 0 && span < 0) return { kind: "blind", index: blind, row };
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
