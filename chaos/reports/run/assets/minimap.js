// The whole run above the lanes: how much changed when, steps, decisions, and the visible part, which can be dragged.
const minimap = document.getElementById("minimap"), thin = minimap.getContext("2d");
const MINIMAP = 40;
let histogram = null;

const minimapX = (t) => (t - full.from) / (full.to - full.from) * view.width;
const minimapTime = (px) => full.from + px / view.width * (full.to - full.from);

// Changes of lanes per pixel; the first state of a lane is no change.
function changesPerPixel() {
  if (histogram && histogram.length === Math.ceil(view.width)) return histogram;
  histogram = new Uint32Array(Math.ceil(view.width));
  const { first, start } = data.spans;
  for (let lane = 0; lane < data.lanes.count; lane++) {
    for (let i = first[lane]; i < first[lane + 1]; i++) {
      if (i > first[lane] || start[i] > data.window[0] + 1000) histogram[Math.min(histogram.length - 1, Math.max(0, Math.floor(minimapX(start[i]))))] += 1;
    }
  }
  return histogram;
}

function drawMinimap() {
  resize(minimap, thin, view.width, MINIMAP);
  const counts = changesPerPixel(), most = counts.reduce((a, b) => Math.max(a, b), 1);
  thin.fillStyle = ink("panel");
  thin.fillRect(0, 0, view.width, MINIMAP);
  thin.fillStyle = ink("quiet");
  counts.forEach((count, px) => {
    if (!count) return;
    const tall = Math.max(2, Math.sqrt(count / most) * (MINIMAP - 12));
    thin.fillRect(px, MINIMAP - tall, 1, tall);
  });
  thin.fillStyle = ink("step");
  for (const step of data.steps) thin.fillRect(minimapX(step.begin), 0, 2, MINIMAP);
  for (const verdict of data.verdicts) drawDecision(verdict);
  drawWindow();
}

function drawDecision(verdict) {
  if (verdict.at === null || verdict.status === "held") return;
  thin.fillStyle = ink(verdict.status);
  thin.fillRect(minimapX(verdict.at) - 1, 0, 3, 8);
}

function drawWindow() {
  const left = minimapX(view.from), right = minimapX(view.to);
  thin.fillStyle = ink("shade");
  thin.fillRect(0, 0, left, MINIMAP);
  thin.fillRect(right, 0, view.width - right, MINIMAP);
  thin.strokeStyle = ink("link");
  thin.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), MINIMAP - 1);
}

function listenToMinimap() {
  const centre = (event) => {
    const size = view.to - view.from;
    moveTo(minimapTime(event.offsetX) - size / 2, size);
    redraw();
  };
  minimap.addEventListener("pointerdown", (event) => { minimap.setPointerCapture(event.pointerId); centre(event); });
  minimap.addEventListener("pointermove", (event) => { if (event.buttons) centre(event); });
}
