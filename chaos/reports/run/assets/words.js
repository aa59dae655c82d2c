// Words for times, states and items: for the tip, for screen readers and for the panel.

function offset(t) {
  const sign = t < 0 ? "-" : "+", rounded = Math.round(Math.abs(t) / 10) / 100;
  const hours = Math.floor(rounded / 3600), minutes = Math.floor(rounded / 60) % 60;
  const seconds = Math.round((rounded % 60) * 100) / 100;
  const parts = `${hours ? `${hours}h` : ""}${minutes ? `${minutes}m` : ""}`;
  return `${sign}${parts}${seconds || !parts ? `${seconds}s` : ""}`;
}

const duration = (ms) => offset(Math.abs(ms)).slice(1);
const clockTime = (t) => new Date(data.origin * 1000 + t).toISOString().replace("T", " ").replace("Z", " UTC");
const stateName = (state) => STATE_NAMES[data.states[state]] || data.states[state];

// Lines that describe an item; the first one is its title.
function wordsOf(item) {
  return WORDS[item.kind](item.index);
}

const WORDS = {
  span(i) {
    const { start, end, text, state } = data.spans;
    return [`${stateName(state[i])} for ${duration(end[i] - start[i])}`, `${offset(start[i])} to ${offset(end[i])}`, data.strings[text[i]]];
  },
  taint(i) {
    const { start, end, text } = data.taints;
    return [`tainted for ${duration(end[i] - start[i])}`, `${offset(start[i])} to ${offset(end[i])}`, data.strings[text[i]]];
  },
  mark(i) { return [data.strings[data.marks.text[i]], offset(data.marks.at[i])]; },
  blind(i) {
    const blind = data.blinds[i];
    return ["blind", `${offset(blind.start)} to ${offset(blind.end)}`, blind.text];
  },
  step(i) {
    const step = data.steps[i];
    return [stepLabel(step), `${step.action}, ${offset(step.begin)} to ${offset(step.end)}`, ...(step.count === 1 ? [step.items[0].text] : [])];
  },
  undo(i) {
    const undo = data.undo[i];
    return [`undo of ${undo.step}`, `${undo.node} ${offset(undo.begin)} to ${offset(undo.end)}`];
  },
  verdict(i) {
    const verdict = data.verdicts[i];
    const times = [["decided", verdict.at], ["due", verdict.deadline]].filter(([, t]) => t !== null).map(([word, t]) => `${word} ${offset(t)}`);
    return [`${verdict.symbol} ${verdict.status}: ${verdict.name}`, times.join(", "), verdict.because];
  },
  entry(i) {
    const { at, kind, text, seq } = data.observations;
    return [`#${seq[i]} ${data.strings[kind[i]]}`, offset(at[i]), data.strings[text[i]]];
  },
};
