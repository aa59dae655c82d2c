// Verdicts: the judged time as a bar, the deadline as its end, the decision as a diamond. Steps and undos.

function drawVerdict(verdict, y) {
  const colour = ink(verdict.status), middle = y + ROW / 2;
  if (verdict.start !== null && verdict.deadline !== null) {
    const left = x(verdict.start), right = x(verdict.deadline);
    pen.fillStyle = colour;
    pen.globalAlpha = 0.28;
    pen.fillRect(left, middle - 3, Math.max(1, right - left), 6);
    pen.globalAlpha = 1;
    pen.fillRect(right - 1, middle - 6, 2, 12);
  }
  if (verdict.at !== null) diamond(x(verdict.at), middle, 5, colour);
}

const chosenVerdict = () => data.verdicts.find((verdict) => verdict.id === view.chosen) || null;

// The time of the chosen verdict as a band across all lanes, its evidence as diamonds on theirs.
function drawChosen() {
  const verdict = chosenVerdict();
  if (!verdict) return;
  if (verdict.start !== null && verdict.deadline !== null) {
    pen.fillStyle = ink("band");
    pen.fillRect(x(verdict.start), AXIS, x(verdict.deadline) - x(verdict.start), view.height);
  }
  const places = new Map();
  for (const seq of verdict.evidence) {
    const row = data.rowOf.get(seq);
    if (row !== undefined) places.set(seq, [data.observations.lane[row], data.observations.at[row]]);
  }
  const visible = visibleRows();
  for (const [seq, [lane, at]] of places) {
    const place = visible.find((i) => rows[i].lane === lane);
    if (lane >= 0 && place !== undefined) diamond(x(at), topOf(place) + ROW / 2, seq === verdict.decided ? 7 : 5, ink("link"));
  }
}

function drawSteps(y) {
  for (const step of data.steps) {
    const left = x(step.begin);
    pen.fillStyle = ink("step");
    pen.globalAlpha = 0.3;
    pen.fillRect(left, y + 4, Math.max(2, x(step.end) - left), ROW - 8);
    pen.globalAlpha = 1;
  }
  for (const undo of data.undo) hatch(x(undo.begin), x(undo.end), y + 2, ROW - 4);
  nameSteps(y);
}

// A name beside each step and undo, if it ends before the next one begins.
function nameSteps(y) {
  const steps = data.steps.map((step) => ({ begin: step.begin, left: x(step.begin) + 5, names: [stepLabel(step), step.name] }));
  const undos = data.undo.map((undo) => ({ begin: undo.begin, left: x(undo.end) + 4, names: [`undo of ${undo.step}`, "undo"] }));
  const found = [...steps, ...undos].sort((a, b) => a.begin - b.begin);
  pen.fillStyle = ink("step");
  found.forEach(({ left, names }, i) => {
    const room = (i + 1 < found.length ? x(found[i + 1].begin) : view.width) - left - 4;
    const name = names.find((text) => widthOf(text) <= room);
    if (name) pen.fillText(name, left, y + ROW / 2);
  });
}

function stepLabel(step) {
  return step.count === 1 ? `${step.name} ${step.items[0].node}` : `${step.name} x${step.count}, ${step.proven} proven`;
}

// A dashed line through all lanes for the begin of each step and undo.
function drawStepLines() {
  pen.lineWidth = 1;
  pen.setLineDash([4, 3]);
  for (const [items, colour] of [[data.steps, "step"], [data.undo, "blind"]]) {
    pen.strokeStyle = ink(colour);
    pen.beginPath();
    for (const item of items) {
      pen.moveTo(x(item.begin), AXIS);
      pen.lineTo(x(item.begin), view.height);
    }
    pen.stroke();
  }
  pen.setLineDash([]);
}
