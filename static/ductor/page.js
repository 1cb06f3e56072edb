// What every page has: the theme's choice, how long ago a time was, copying a key.
(() => {
  "use strict";
  const root = document.documentElement;

  for (const label of document.querySelectorAll("[data-theme-choice]")) {
    const select = label.querySelector("select");
    label.hidden = false;
    select.value = root.dataset.theme || "";
    select.addEventListener("change", () => {
      if (select.value) root.dataset.theme = select.value;
      else delete root.dataset.theme;
      try { localStorage.setItem("ductor-theme", select.value); } catch { /* holds for this page only */ }
    });
  }

  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const tell = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      if (!time.title) {
        time.title = time.textContent.trim();
        time.textContent = "";
      }
      const seconds = Math.round((new Date(time.dateTime) - Date.now()) / 1000);
      const [unit, size] = units.find(([, least]) => Math.abs(seconds) >= least) || ["second", 1];
      const text = Math.abs(seconds) > 7 * 86400 ? time.title.slice(0, 16) : words.format(Math.trunc(seconds / size), unit);
      if (time.textContent !== text) time.textContent = text;
    }
  };
  tell();
  setInterval(tell, 1000);
  document.addEventListener("htmx:afterSwap", tell);

  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("[data-copy-text]").textContent);
      button.textContent = "Copied";
    });
  }

  // An open menu closes on Escape and on a click elsewhere.
  const close = (menu) => { menu.open = false; };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) { close(menu); menu.querySelector("summary").focus(); }
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) close(menu);
  });
})();
