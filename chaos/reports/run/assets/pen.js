// Canvases, colours of the style sheet, and text that fits.
const canvas = document.getElementById("lanes"), board = document.getElementById("board");
const pen = canvas.getContext("2d");
const FONT = "12px system-ui, sans-serif", BOLD = "600 12px system-ui, sans-serif";
const STATE_NAMES = { notready: "not ready", running: "running, not ready" };
const widths = new Map(), colours = new Map();

function ink(name) {
  let found = colours.get(name);
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, found);
  }
  return found;
}

function widthOf(text) {
  const key = pen.font + text;
  let found = widths.get(key);
  if (found === undefined) {
    if (widths.size > 20000) widths.clear();
    found = pen.measureText(text).width;
    widths.set(key, found);
  }
  return found;
}

// The text, shortened in its middle: the ends of names are what differs.
function fit(text, room) {
  if (widthOf(text) <= room) return text;
  let size = Math.floor(text.length * room / widthOf(text));
  const cut = () => `${text.slice(0, Math.ceil(size / 2))}…${text.slice(text.length - Math.floor(size / 2))}`;
  while (size > 2 && widthOf(cut()) > room) size -= 1;
  return size > 2 ? cut() : "";
}

// Sets the size of a canvas for the density of the screen, which clears it.
function resize(target, brush, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const wide = Math.round(width * ratio), tall = Math.round(height * ratio);
  if (target.width !== wide || target.height !== tall) {
    target.width = wide;
    target.height = tall;
    target.style.height = `${height}px`;
  }
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.fillStyle = ink("paper");
  brush.fillRect(0, 0, width, height);
}

// Draws inside the plot only, without the names.
function plot(body) {
  pen.save();
  pen.beginPath();
  pen.rect(view.gutter, AXIS, view.width - view.gutter, view.height - AXIS);
  pen.clip();
  body();
  pen.restore();
}

function diamond(left, middle, size, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(left, middle - size);
  pen.lineTo(left + size, middle);
  pen.lineTo(left, middle + size);
  pen.lineTo(left - size, middle);
  pen.fill();
}

function hatch(left, right, top, tall) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, Math.max(2, right - left), tall);
  pen.clip();
  pen.strokeStyle = ink("blind");
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = Math.max(left, view.gutter) - tall; at < Math.min(right, view.width); at += 5) {
    pen.moveTo(at, top + tall);
    pen.lineTo(at + tall, top);
  }
  pen.stroke();
  pen.restore();
}
