// Sets the chosen theme before anything is drawn. Without a choice the system's theme holds.
(() => {
  try {
    const chosen = localStorage.getItem("ductor-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* no storage: the system's theme */ }
})();
