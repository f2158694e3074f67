// Light or dark: the reader's choice, kept by the browser, or else the system's. A classic script, run before anything
// is painted.
(() => {
  const KEY = "attune-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  // Storage may be forbidden; then the choice lasts as long as the page.
  let chosen = null;
  try {
    chosen = window.localStorage.getItem(KEY);
  } catch {
    chosen = null;
  }
  let printing = false;

  const current = () => {
    if (printing) return "light";
    return chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
  };
  const apply = () => {
    if (document.documentElement.dataset.theme === current()) return;
    document.documentElement.dataset.theme = current();
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  system.addEventListener("change", apply);
  window.addEventListener("beforeprint", () => {
    printing = true;
    apply();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    apply();
  });
  apply();

  window.attuneTheme = {
    current,
    toggle() {
      chosen = current() === "dark" ? "light" : "dark";
      try {
        window.localStorage.setItem(KEY, chosen);
      } catch {
        // As above.
      }
      apply();
    },
  };
})();
