// Search and filters above the timeline; the number of lanes that they leave is announced.
const control = (id) => document.getElementById(id);
const FILTERS = { show: "show", "by-node": "node", "by-owner": "owner", "by-state": "state", group: "group" };

// Layout and drawing after a change of what is shown.
function refresh() {
  layout();
  const lanes = data.lanes.count, pods = lanes - data.lanes.kind.filter((kind) => kind === NODE).length;
  const [shown, all, nodes, rest] = [shownLanes, lanes, lanes - pods, pods].map((count) => count.toLocaleString("en-US"));
  control("found").textContent = `${shown} of ${all} lanes (${nodes} nodes, ${rest} pods)`;
  document.body.dataset.lanes = shownLanes;
  redraw();
}

function fillChoices() {
  for (const [id, options] of Object.entries(choices())) addOptions(id, options);
}

// By control, the [value, text] of each option: lanes of nodes, and owners as indexes of strings.
function choices() {
  const nodes = [], owners = new Map();
  for (let lane = 0; lane < data.lanes.count; lane++) {
    if (isNode(lane)) nodes.push([lane, nameOf(lane)]);
    else if (ownerOf(lane)) owners.set(data.lanes.owner[lane], ownerOf(lane));
  }
  return { "by-node": nodes, "by-owner": [...owners].sort(([, a], [, b]) => a < b ? -1 : 1) };
}

function addOptions(id, options) {
  control(id).append(...options.map(([value, text]) => make("option", { value: String(value) }, text)));
}

// Shows everything that matches a search, or everything.
function clearFilters(search = "") {
  Object.assign(view, { show: "all", node: "", owner: "", state: "", search });
  for (const [id, key] of Object.entries(FILTERS)) control(id).value = view[key];
  control("search").value = search;
  refresh();
}

// Starts with the affected lanes, or with all changes if the run affected none.
function chooseShow() {
  view.show = data.lanes.flags.some((flags) => flags & AFFECTED) ? "affected" : "changed";
  control("show").value = view.show;
}

function listenToControls() {
  document.querySelector("form.bar").addEventListener("submit", (event) => event.preventDefault());
  control("search").addEventListener("input", (event) => { view.search = event.target.value; refresh(); });
  for (const [id, key] of Object.entries(FILTERS)) {
    control(id).addEventListener("change", (event) => { view[key] = event.target.value; refresh(); });
  }
  const press = (id, key) => control(id).addEventListener("click", (event) => { KEYS[key](event); redraw(); });
  press("zoom-in", "+");
  press("zoom-out", "-");
  press("zoom-all", "0");
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.clear(); redraw(); });
}
