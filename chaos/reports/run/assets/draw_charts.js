// Charts of counts: values as a line, bounds as dashed lines with their names.

// The values of the axis: from 0, unless all values lie in a small range far from it.
function rangeOf(chart) {
  let low = Infinity, high = -Infinity;
  for (const value of [...chart.value, ...chart.bounds.map((bound) => bound[1])]) {
    if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  if (low > high) return [0, 1];
  const spread = high - low;
  if (low > 0 && (spread === 0 || spread > high / 5)) return [0, high];
  if (low > 0) return [low - spread, high];
  return [low, spread > 0 ? high : low + 1];
}

// The least and the greatest value, null without any.
function extremes(chart) {
  const known = chart.value.filter((value) => value !== null);
  return known.length ? [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))] : null;
}

function drawChart(chart, top) {
  const [low, high] = chart.range ??= rangeOf(chart);
  const y = (value) => top + 8 + (high - value) / (high - low) * (CHART - 16);
  drawBounds(chart, y);
  pen.strokeStyle = ink("chart");
  pen.lineWidth = 1.5;
  pen.beginPath();
  traceValues(chart, y);
  pen.stroke();
  pen.lineWidth = 1;
}

function traceValues(chart, y) {
  const first = Math.max(0, lastAt(chart.at, view.from));
  let before = null;
  for (let i = first; i < chart.at.length && (i === first || chart.at[i - 1] <= view.to); i++) {
    const value = chart.value[i], left = x(chart.at[i]);
    if (value !== null) {
      if (before === null) pen.moveTo(left, y(value));
      else if (chart.step) pen.lineTo(left, y(before));
      pen.lineTo(left, y(value));
    }
    before = value;
  }
  if (chart.step && before !== null) pen.lineTo(x(data.window[1]), y(before));
}

function drawBounds(chart, y) {
  pen.strokeStyle = ink("quiet");
  pen.fillStyle = ink("quiet");
  pen.setLineDash([2, 3]);
  for (const [, value] of chart.bounds) {
    pen.beginPath();
    pen.moveTo(view.gutter, Math.round(y(value)) + 0.5);
    pen.lineTo(view.width, Math.round(y(value)) + 0.5);
    pen.stroke();
  }
  pen.setLineDash([]);
}

// Second line of a chart's name: its least and greatest value, and its bounds.
function chartSummary(chart) {
  const unit = chart.unit ? ` ${chart.unit}` : "";
  const found = chart.extremes ??= extremes(chart);
  const bounds = chart.bounds.map(([label, value]) => `${label === "of" ? "" : ","} ${label} ${shortNumber(value)}`).join("");
  if (!found) return `no values${bounds}`;
  const [low, high] = found.map(shortNumber);
  return `${low === high ? low : `${low} to ${high}`}${unit}${bounds}`;
}

const shortNumber = (value) => String(Number(value.toPrecision(4)));

// Index of the last point at or before t, -1 before the first.
function lastAt(times, t) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function valueAt(chart, t) {
  const index = lastAt(chart.at, t);
  return index < 0 ? null : chart.value[index];
}
