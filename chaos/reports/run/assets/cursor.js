// The cursor: a moment, with the state of every visible lane at it beside the lane's name.

// Index of the span of a lane at t, -1 if the object did not exist.
function spanAt(lane, t) {
  const i = firstVisible(data.spans, lane, t);
  return i < data.spans.first[lane + 1] && data.spans.start[i] <= t ? i : -1;
}

function stateText(row, t) {
  if (row.chart) { const value = valueAt(row.chart, t); return value === null ? "no value" : shortNumber(value); }
  if (row.lane === undefined) return "";
  const i = spanAt(row.lane, t);
  return i < 0 ? "absent" : stateName(data.spans.state[i]);
}

// Pixels that the state at the cursor takes from the room of a name.
function cursorRoom(row) {
  if (view.cursor === null) return 0;
  const text = stateText(row, view.cursor);
  return !text ? 0 : view.gutter < 200 ? 14 : widthOf(text) + 22;
}

function drawCursorState(row, y) {
  const text = view.cursor === null ? "" : stateText(row, view.cursor);
  if (!text) return;
  const middle = y + (row.chart ? 14 : ROW / 2), i = row.lane === undefined ? -1 : spanAt(row.lane, view.cursor);
  if (row.lane !== undefined) {
    pen.fillStyle = i < 0 ? ink("line") : ink(`s-${data.states[data.spans.state[i]]}`);
    pen.fillRect(view.gutter - 14, middle - 5, 10, 10);
  }
  if (view.gutter < 200) return;
  pen.fillStyle = ink("quiet");
  pen.textAlign = "end";
  pen.fillText(text, view.gutter - 18, middle);
  pen.textAlign = "start";
}

function drawCursorLine() {
  if (view.cursor === null) return;
  pen.fillStyle = ink("ink");
  pen.fillRect(x(view.cursor), AXIS, 1, view.height);
}

// The next moment after (direction 1) or before (-1) t at which something of the row changes; null for none.
function nextChange(row, t, direction) {
  const times = changesOf(row).sort((a, b) => a - b);
  const found = direction > 0 ? times.find((at) => at > t + 0.5) : times.reverse().find((at) => at < t - 0.5);
  return found === undefined ? null : found;
}

function changesOf(row) {
  if (row.kind === "steps") return [...data.steps, ...data.undo].flatMap((item) => [item.begin, item.end]);
  if (row.verdict) return [row.verdict.start, row.verdict.at, row.verdict.deadline].filter((t) => t !== null);
  if (row.chart) return [...row.chart.at];
  if (row.lane === undefined) return [];
  const times = [];
  for (const [table, column] of [[data.spans, "start"], [data.taints, "start"], [data.marks, "at"]]) {
    times.push(...table[column].slice(table.first[row.lane], table.first[row.lane + 1]));
  }
  return times;
}
