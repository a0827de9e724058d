// Sets the theme that was chosen before the first paint. A classic script, for modules run after it.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("podium-theme");
  } catch {
    // Storage is closed to us: the system's theme holds.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
