// Renews the dashboard while it is seen, and says of each time how long ago it was.
(function () {
  "use strict";

  function ago(then) {
    var seconds = Math.round((Date.now() - then) / 1000);
    var span = Math.abs(seconds);
    var text = span < 60 ? span + " s" : span < 3600 ? Math.floor(span / 60) + " min"
      : span < 86400 ? Math.floor(span / 3600) + " h" : Math.floor(span / 86400) + " d";
    return seconds < 0 ? "in " + text : text + " ago";
  }

  function tell(root) {
    root.querySelectorAll("time[datetime]").forEach(function (element) {
      element.title = ago(Date.parse(element.getAttribute("datetime")));
    });
  }

  function watch(root) {
    var body = root.querySelector("[data-live-body]");
    var status = root.querySelector("[data-live-status]");
    var button = root.querySelector("[data-live-pause]");
    var seconds = Number(root.dataset.seconds);
    var paused = false, asking = false;

    function renew() {
      if (paused || asking || document.hidden) { return; }
      asking = true;
      fetch(root.dataset.live, { headers: { "HX-Request": "true" }, credentials: "same-origin" })
        .then(function (answer) {
          if (answer.headers.get("HX-Redirect")) { window.location.assign(answer.headers.get("HX-Redirect")); }
          if (!answer.ok || answer.redirected) { throw new Error(String(answer.status)); }
          return answer.text();
        })
        .then(function (text) {
          // The place of a reader inside a table is kept; the fragment is made by this site and escaped there.
          body.innerHTML = text;
          tell(body);
          status.textContent = "Live: every " + seconds + " s while this page is seen.";
        })
        .catch(function () { status.textContent = "Not renewed: the console does not answer. Trying again."; })
        .finally(function () { asking = false; });
    }

    button.addEventListener("click", function () {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
      button.textContent = paused ? "Go on" : "Pause";
      status.textContent = paused ? "Paused." : "Live: every " + seconds + " s while this page is seen.";
      renew();
    });
    document.addEventListener("visibilitychange", renew);
    window.setInterval(renew, seconds * 1000);
  }

  // Unfold's palette follows what the arrow keys chose; Enter alone takes the first tenant.
  document.addEventListener("keydown", function (event) {
    if (event.key !== "Enter" || event.target.id !== "search-input-command") { return; }
    if (document.querySelector("#command-results-list li.active")) { return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    var first = document.querySelector("#command-results-list a");
    if (first) { window.location.assign(first.href); }
  }, true);

  document.addEventListener("DOMContentLoaded", function () {
    tell(document);
    document.querySelectorAll("[data-live]").forEach(watch);
  });
})();
