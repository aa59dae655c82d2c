// A page that follows a run: messages of the server draw it, and the end of the run makes it the final report.
let queue = Promise.resolve(), hasChosenShow = false, heard = false;

function fail(error) {
  document.body.dataset.error = String(error && error.message || error);
  showConnection("broken", `This page has failed: ${document.body.dataset.error}`);
}

// The connection, in a word for the style and a sentence for people.
function showConnection(state, words) {
  document.body.dataset.connection = state;
  control("connection").textContent = words;
}

function takeMessage(message) {
  const before = data && remembered();
  data = withTypedColumns(grow(message));
  keys = grown.order;
  haystacks = histogram = null;
  if (before) keepView(before); else begin();
  if (!hasChosenShow) showWhatHappened();
  listExpectations();
  control("observed").textContent = observedWords();
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
}

function begin() {
  control("waiting").hidden = true;
  resetView();
  fillChoices();
  for (const listen of [listenToPointer, listenToMinimap, listenToKeys, listenToControls, listenToLinks, listenToObservations]) listen();
  control("show").addEventListener("change", () => { hasChosenShow = true; });
  showWhatHappened();
  refresh();
  draw();
  showAddress();
  document.body.dataset.drawn = "true";
}

// All changes until the fault affects lanes, then those, unless somebody has chosen.
function showWhatHappened() {
  const before = view.show;
  chooseShow();
  if (view.show !== before) refresh();
}

// What the server says about the run itself.
function takeState(state) {
  document.title = `${state.phase} · ${state.experiment}`;
  control("experiment").textContent = [state.experiment, state.cluster].filter(Boolean).join(" on ");
  control("phase").textContent = state.phase;
  control("note").textContent = state.note;
  control("stop").disabled = state.stop !== "ready";
  control("stop").textContent = state.stop === "asked" ? "Stopping…" : "Stop and undo";
}

function listExpectations() {
  const lines = data.verdicts.map((verdict) => {
    const badge = make("span", { class: `badge ${verdict.status}` }, `${verdict.symbol} ${verdict.status}`);
    const link = make("a", { href: `#at-verdict-${verdict.id}` }, verdict.name);
    return make("tr", {}, make("td", {}, badge), make("td", {}, link, make("span", { class: "sub" }, verdict.part)), make("td", {}, untilWords(verdict)));
  });
  const counts = ["violated", "inconclusive", "pending", "held"].map((status) => [status, data.verdicts.filter((verdict) => verdict.status === status).length]);
  control("counts").textContent = counts.filter(([, count]) => count).map(([status, count]) => `${count} ${status}`).join(", ");
  const worst = counts.find(([, count]) => count);
  document.querySelector("header").className = worst && worst[0] !== "held" ? worst[0] : "";
  control("expectations").querySelector("tbody").replaceChildren(...lines);
}

// A pending expectation with the time that it has left.
function untilWords(verdict) {
  if (verdict.status !== "pending" || verdict.deadline === null) return verdict.because;
  const left = verdict.deadline - data.window[1];
  return left > 0 ? `${duration(Math.round(left / 1000) * 1000)} left: ${verdict.because}` : verdict.because;
}

function listenToStop() {
  const dialog = control("stop-dialog");
  control("stop").addEventListener("click", () => dialog.showModal());
  control("stop-no").addEventListener("click", () => dialog.close());
  control("stop-yes").addEventListener("click", () => { dialog.close(); stop().catch(fail); });
}

async function stop() {
  control("stop").disabled = true;
  const answer = await fetch("stop", { method: "POST" }).catch(() => null);
  if (answer?.ok) return;
  control("stop").disabled = false; // it may be pressed again
  control("note").textContent = `Not stopped: ${answer ? await answer.text() : "no connection"}`;
}

// One after the other, as a whole page takes time to unpack.
function then(action) {
  queue = queue.then(action).catch(fail);
}

function listenToServer() {
  const source = new EventSource("events");
  const listen = (name, take) => source.addEventListener(name, (event) => then(() => take(event.data)));
  listen("whole", async (text) => takeMessage(await unpacked(text)));
  listen("more", (text) => takeMessage(JSON.parse(text)));
  listen("state", (text) => takeState(JSON.parse(text)));
  listen("end", (text) => {
    source.close();
    const { report, words } = JSON.parse(text);
    if (report) location.reload(); // the final report is at the same address now
    else { control("stop").disabled = true; showConnection("lost", words); }
  });
  source.addEventListener("open", () => { heard = true; showConnection("live", "live"); });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) showConnection("lost", heard ? "The connection was refused: open the address again." : "Not admitted: open the address that nodefall printed.");
    else showConnection("lost", "No connection: the run may have ended; its report is in its directory. Trying again.");
  });
}

window.addEventListener("error", (event) => fail(event.error || event.message));
history.replaceState(null, "", location.pathname + location.hash); // the token stays in a cookie
listenToStop();
listenToServer();
