// Input: wheel, drag, keys, verdict rows, evidence links. Marks the body when drawing is complete, or with the error.
const tip = document.getElementById("tip");
let queued = false, grip = null;

function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; draw(); });
}

function choose(id) {
  view.chosen = data.verdicts.find((verdict) => verdict.id === id) || null;
  for (const row of document.querySelectorAll("tr[data-verdict]")) row.classList.toggle("chosen", row.dataset.verdict === id);
  redraw();
}

function showTip(event) {
  const box = canvas.getBoundingClientRect();
  const text = grip ? "" : describe(event.clientX - box.left, event.clientY - box.top);
  tip.textContent = text;
  tip.style.visibility = text ? "visible" : "hidden";
  if (!text) return;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = (below ? event.clientY + 16 : Math.max(4, event.clientY - tip.offsetHeight - 8)) + "px";
}

function reset() { moveTo(full.from, full.to - full.from); }

function press(key) {
  const size = view.to - view.from, middle = view.from + size / 2;
  const commands = {
    ArrowLeft: () => moveTo(view.from - size / 8, size), ArrowRight: () => moveTo(view.from + size / 8, size),
    ArrowUp: () => { board.scrollTop -= ROW * 3; }, ArrowDown: () => { board.scrollTop += ROW * 3; },
    "+": () => zoom(0.7, middle), "=": () => zoom(0.7, middle), "-": () => zoom(1 / 0.7, middle), 0: reset,
  };
  if (!(key in commands)) return false;
  commands[key]();
  redraw();
  return true;
}

function listen() {
  // Without Ctrl the wheel scrolls the page: the chart must not stop a reader from scrolling past it.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.002), time(Math.max(view.gutter, event.offsetX)));
    redraw();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    const row = rows[Math.floor((event.offsetY - AXIS + view.scroll) / ROW)];
    if (row && row.verdict && event.offsetY > AXIS) choose(row.verdict.id);
    grip = { at: event.clientX, from: view.from };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    showTip(event);
    if (!grip) return;
    const size = view.to - view.from;
    moveTo(grip.from - (event.clientX - grip.at) / (view.width - view.gutter) * size, size);
    redraw();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { grip = null; });
  canvas.addEventListener("pointerleave", () => { tip.style.visibility = "hidden"; });
  canvas.addEventListener("keydown", (event) => { if (press(event.key)) event.preventDefault(); });
  board.addEventListener("scroll", redraw);
  window.addEventListener("resize", redraw);
  for (const [id, key] of [["in", "+"], ["out", "-"], ["reset", "0"]]) {
    document.getElementById(id).addEventListener("click", () => press(key));
  }
  document.getElementById("all-pods").addEventListener("change", (event) => {
    view.allPods = event.target.checked;
    layout();
    redraw();
  });
  for (const row of document.querySelectorAll("tr[data-verdict]")) {
    row.addEventListener("click", (event) => { if (!event.target.closest("a")) choose(row.dataset.verdict); });
    row.addEventListener("focusin", () => choose(row.dataset.verdict));
  }
  window.addEventListener("hashchange", openTarget);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
}

function openTarget() {
  const target = /^#e\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (!target) return;
  document.getElementById("observations").open = true;
  target.scrollIntoView({ block: "center" });
}

window.addEventListener("error", (event) => { document.body.dataset.error = event.message; });
readColours();
layout();
listen();
const worst = data.verdicts.find((v) => v.status === "violated") || data.verdicts.find((v) => v.status === "inconclusive");
if (worst) choose(worst.id);
draw();
openTarget();
document.body.dataset.lanes = rows.filter((row) => row.lane).length;
document.body.dataset.drawn = "true";
