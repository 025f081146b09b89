"use strict";
(() => {
  const button = document.getElementById("scheme");
  const root = document.documentElement;
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.scheme || (preferred.matches ? "dark" : "light")) === "dark";
  const say = () => { button.textContent = dark() ? "Light view" : "Dark view"; };

  button.addEventListener("click", () => {
    root.dataset.scheme = dark() ? "light" : "dark";
    say();
  });
  preferred.addEventListener("change", say);
  say();
})();
