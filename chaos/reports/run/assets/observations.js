// All observed changes as a list, in portions, when the section is opened.
const PORTION = 200;
let listed = 0;

function listMore() {
  const list = control("observations-list"), { seq } = data.observations;
  const lines = [];
  for (const end = Math.min(seq.length, listed + PORTION); listed < end; listed++) lines.push(entryLink(listed));
  list.querySelector("button")?.remove();
  list.append(...lines);
  if (listed < seq.length) list.append(button(`Show ${Math.min(PORTION, seq.length - listed)} more`, listMore));
}

const observedWords = () => `${data.observations.seq.length} changes${data.omitted ? `; the recording has ${data.omitted} more` : ""}`;

function listenToObservations() {
  control("observed").textContent = observedWords();
  control("observations").addEventListener("toggle", () => { if (!listed) listMore(); });
}
