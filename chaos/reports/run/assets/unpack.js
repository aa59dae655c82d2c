"use strict";
document.documentElement.classList.add("scripts"); // shows the parts that need scripts
// The data of the page, in the shape that chaos/reports/run/page/page_data.py describes.
const CONTRACT = 2;
const TARGET = 1, CHANGED = 2, AFFECTED = 4;
const NODE = 0, GONE = 1;
let data = null;

async function unpack() {
  data = withTypedColumns(await unpacked(document.getElementById("data").textContent));
}

// The value of chaos/reports/run/page/columns.py pack(), if it has the version of this script.
async function unpacked(text) {
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const found = await new Response(stream).json();
  if (found.version !== CONTRACT) throw new Error(`the data has version ${found.version}, not ${CONTRACT}`);
  return found;
}

function withTypedColumns(found) {
  for (const table of [found.spans, found.taints]) {
    table.start = Float64Array.from(table.start);
    table.end = Float64Array.from(table.end);
  }
  found.spans.state = Uint8Array.from(found.spans.state);
  found.lanes.count = found.lanes.kind.length;
  for (const name of ["spans", "taints", "marks"]) found[name].first = firsts(found.lanes[name]);
  found.changes.first = firsts(found.observations.changes);
  found.rowOf = new Map(found.observations.seq.map((seq, row) => [seq, row]));
  return found;
}

// Where the rows of each owner begin in a table, from how many each owns; the last element is the end.
function firsts(counts) {
  const first = new Uint32Array(counts.length + 1);
  counts.forEach((count, i) => { first[i + 1] = first[i] + count; });
  return first;
}

const nameOf = (lane) => data.strings[data.lanes.name[lane]];
const shortOf = (lane) => data.strings[data.lanes.short[lane]];
const ownerOf = (lane) => data.strings[data.lanes.owner[lane]];
const isNode = (lane) => data.lanes.kind[lane] === NODE;
const hasFlag = (lane, flag) => (data.lanes.flags[lane] & flag) !== 0;
const nodeNameOf = (lane) => data.lanes.node[lane] < 0 ? "" : nameOf(data.lanes.node[lane]);
