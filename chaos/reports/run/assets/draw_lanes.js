// Lanes: states as bars, taints as lines below, deletions and disruptions as marks, blind windows hatched.

// Index of the first row of a lane's part of a table that ends after t.
function firstVisible(table, lane, t) {
  let low = table.first[lane], high = table.first[lane + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table.end[middle] <= t) low = middle + 1; else high = middle;
  }
  return low;
}

function drawLane(lane, y) {
  drawSpans(lane, y);
  drawTaints(lane, y);
  // A host that cannot be reached hides nothing of the node's own state: a thin line.
  for (const blind of blindsOf(lane)) hatch(x(blind.start), x(blind.end), y + 1, blind.node ? 4 : ROW - 2);
  const { first, at, kind } = data.marks;
  for (let i = first[lane]; i < first[lane + 1]; i++) drawMark(x(at[i]), y, kind[i]);
}

function drawSpans(lane, y) {
  const { first, start, end, state } = data.spans;
  let drawn = -1;
  for (let i = firstVisible(data.spans, lane, view.from); i < first[lane + 1] && start[i] <= view.to; i++) {
    const left = Math.max(x(start[i]), view.gutter), right = Math.min(x(end[i]), view.width);
    if (right <= drawn && right - left < 1) continue; // not even one more pixel
    drawn = Math.max(left + 1, right);
    pen.fillStyle = ink(`s-${data.states[state[i]]}`);
    pen.fillRect(left, y + 3, Math.max(1, right - left), ROW - 6);
    nameState(data.states[state[i]], left, right, y);
  }
}

function nameState(state, left, right, y) {
  const name = STATE_NAMES[state] || state;
  if (state === "ready" || right - left < 32 || widthOf(name) > right - left - 8) return;
  pen.fillStyle = ink("s-text");
  pen.fillText(name, left + 4, y + ROW / 2);
}

function drawTaints(lane, y) {
  const { first, start, end } = data.taints;
  pen.fillStyle = ink("taint");
  for (let i = first[lane]; i < first[lane + 1]; i++) pen.fillRect(x(start[i]), y + ROW - 4, Math.max(2, x(end[i]) - x(start[i])), 3);
}

function drawMark(left, y, kind) {
  if (left < view.gutter || left > view.width) return;
  pen.fillStyle = ink(kind === GONE ? "quiet" : "violated");
  pen.textAlign = "center";
  pen.fillText(kind === GONE ? "×" : "▼", left, y + (kind === GONE ? ROW / 2 : 5));
  pen.textAlign = "start";
}

// Blind windows of a lane: of all nodes, of all pods, of one node's host, or of everything (a truncated recording).
function blindsOf(lane) {
  const kinds = isNode(lane) ? ["nodes", "recording"] : ["pods", "recording"];
  return data.blinds.filter((b) => b.node ? isNode(lane) && b.node === nameOf(lane) : kinds.includes(b.kind));
}
