"use strict";
(() => {
  const status = document.getElementById("copied");

  function selectAndCopy(source) {
    const range = document.createRange();
    range.selectNodeContents(source);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const done = document.execCommand("copy");
    selection.removeAllRanges();
    return done;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    let done = true;
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      done = selectAndCopy(source);
    }
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    status.textContent = done ? "Launch command copied" : "Copying is not allowed here: select the command and copy it";
    setTimeout(() => { button.textContent = "Copy"; status.textContent = ""; }, 2500);
  });

  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details:not(:has(> summary.quiet))")) each.open = true;
  });
})();
