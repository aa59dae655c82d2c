// Starts the page, and marks the body when drawing is complete, or with the error.

function fail(error) {
  document.body.dataset.error = String(error && error.message || error);
  document.documentElement.classList.remove("scripts"); // the still picture instead
}

async function start() {
  await unpack();
  resetView();
  fillChoices();
  chooseShow();
  const worst = data.verdicts.find((verdict) => verdict.status === "violated" || verdict.status === "inconclusive");
  if (worst) choose(worst.id);
  for (const listen of [listenToPointer, listenToMinimap, listenToKeys, listenToControls, listenToLinks, listenToObservations]) listen();
  refresh();
  draw();
  showAddress();
  document.body.dataset.drawn = "true";
  document.body.dataset.ready = Math.round(performance.now()); // milliseconds after the page was opened
}

window.addEventListener("error", (event) => fail(event.error || event.message));
start().catch(fail);
