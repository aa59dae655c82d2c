// Which lanes are shown: by what happened, by search, node, owner and state.
let haystacks = null;

function haystack(lane) {
  haystacks ??= new Array(data.lanes.count);
  return haystacks[lane] ??= `${nameOf(lane)} ${ownerOf(lane)} ${nodeNameOf(lane)}`.toLowerCase();
}

const isNarrowed = () => Boolean(view.search || view.node !== "" || view.owner !== "" || view.state !== "");

function hadState(lane, state) {
  const { first, state: states } = data.spans;
  for (let i = first[lane]; i < first[lane + 1]; i++) if (states[i] === state) return true;
  return false;
}

// Whether something happened on a lane that the choice "Show" includes.
function happened(lane) {
  if (view.show === "all") return true;
  return hasFlag(lane, view.show === "affected" ? AFFECTED : CHANGED);
}

// A predicate for lanes: search, node, owner and state, without "Show".
function narrowing() {
  const words = view.search.toLowerCase().split(/\s+/).filter(Boolean);
  const node = view.node === "" ? null : Number(view.node), owner = view.owner === "" ? null : Number(view.owner);
  const state = view.state === "" ? null : data.states.indexOf(view.state);
  return (lane) =>
    (node === null || data.lanes.node[lane] === node) &&
    (owner === null || data.lanes.owner[lane] === owner) &&
    (state === null || hadState(lane, state)) &&
    words.every((word) => haystack(lane).includes(word));
}
