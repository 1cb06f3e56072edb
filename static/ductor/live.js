// Keeps a part of the page up to date: asks every few seconds, is answered 304 where nothing changed, and stays still
// while the page is hidden, paused, finished, or somebody marks text in it.
(() => {
  "use strict";
  const EVERY = 3000;
  const live = document.getElementById("live");
  if (!live || !live.dataset.live) return;
  const status = document.querySelector("[data-live-status]");
  const pause = document.querySelector("[data-live-pause]");
  let paused = false;

  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  const ended = () => live.querySelector("[data-ended]") !== null;
  const marking = () => {
    const marked = document.getSelection();
    return marked && !marked.isCollapsed && live.contains(marked.anchorNode);
  };
  const reading = () => live.querySelector("details[open]") !== null;

  const look = () => {
    if (ended()) { say("Finished."); pause.hidden = true; clearInterval(timer); return; }
    if (!paused && !document.hidden && !marking() && !reading()) htmx.trigger(live, "refresh");
  };

  live.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["If-None-Match"] = live.dataset.etag;
  });
  live.addEventListener("htmx:afterRequest", (event) => {
    const answer = event.detail.xhr;
    if (answer.status === 200) live.dataset.etag = answer.getResponseHeader("ETag") || "";
    if (answer.status === 200 || answer.status === 304) say("Live.");
    else say("Not up to date: the server does not answer as it should.");
  });
  live.addEventListener("htmx:afterSettle", () => { if (ended()) look(); });
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    say(paused ? "Paused." : "Live.");
    look();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  say("Live.");
  const timer = setInterval(look, EVERY);
  if (ended()) look();
})();
