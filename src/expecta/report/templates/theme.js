(function () {
  var root = document.documentElement;
  var button = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }
  function show() {
    button.setAttribute("aria-pressed", String(isDark()));
  }
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  button.hidden = false;
  show();
})();
