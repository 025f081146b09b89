"use strict";
(() => {
  const NARROW = 560, GAP = 36, AXIS = 64;
  const config = JSON.parse(document.getElementById("chart-config").textContent);
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const rows = [...document.querySelectorAll("tr[data-name]")];
  const picker = document.getElementById("bring-out");
  const views = new Map();
  let chosen = "";

  function sized(source, width) {
    const spec = JSON.parse(source);
    const narrow = width < NARROW;
    for (const param of spec.params) if (param.name === "narrow") param.value = narrow;
    if (spec.facet) {
      const data = Object.values(spec.datasets || {}).concat([spec.data.values || []]).flat();
      const panels = new Set(data.map((row) => row[spec.facet.field])).size;
      const strips = spec.columns === 1;
      const columns = narrow ? 1 : Math.min(spec.columns, panels);
      spec.columns = columns;
      spec.spec.width = Math.floor((width - GAP * (columns - 1)) / columns - AXIS);
      if (narrow && !strips) spec.spec.height = 220;
    } else {
      spec.width = width - 8;
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
    const axis = { ...config.axis, labelLimit: narrow ? Math.floor(width * 0.36) : config.axis.labelLimit };
    return [spec, { ...config, axis }];
  }

  // Many marks change at once: what is pointed at when the browser draws next is brought out, once.
  let shown = "", wanted = "", waiting = false;
  function bringOut(name) {
    wanted = name;
    if (waiting || wanted === shown) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (wanted === shown) return;
      shown = wanted;
      for (const view of views.values()) view.signal("focus", shown).runAsync();
      for (const row of rows) row.classList.toggle("lit", shown !== "" && row.dataset.name === shown);
    });
  }

  function choose(name) {
    chosen = name;
    for (const each of document.querySelectorAll("button[data-focus]")) {
      each.setAttribute("aria-pressed", String(each.dataset.focus === chosen));
    }
    if (picker) picker.value = chosen;
    bringOut(chosen);
  }

  async function draw(figure) {
    const plot = figure.querySelector(".plot");
    const width = plot.clientWidth;
    if (!width || figure.dataset.width === String(width)) return;
    figure.dataset.width = String(width);
    const [spec, look] = sized(figure.querySelector(".spec").textContent, width);
    views.get(figure)?.finalize();
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: look, defaultStyle: false };
    const { view } = await window.vegaEmbed(plot, spec, options);
    view.addEventListener("mouseover", (_, item) => bringOut(item?.datum?.name || chosen));
    view.addEventListener("mouseout", () => bringOut(chosen));
    view.addEventListener("click", (_, item) => {
      const name = item?.datum?.name || "";
      choose(name === chosen ? "" : name);
    });
    view.signal("focus", chosen).run();
    plot.querySelector("svg")?.setAttribute("aria-hidden", "true");
    views.set(figure, view);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-focus]");
    const row = event.target.closest("summary, a, button, pre, details") ? null : event.target.closest("tr[data-name]");
    const name = button ? button.dataset.focus : row?.dataset.name;
    if (name === undefined || String(window.getSelection())) return;
    choose(name === chosen ? "" : name);
  });
  picker?.addEventListener("change", () => choose(picker.value));

  for (const row of rows) {
    row.addEventListener("mouseenter", () => bringOut(row.dataset.name));
    row.addEventListener("mouseleave", () => bringOut(chosen));
    row.addEventListener("focusin", () => bringOut(row.dataset.name));
    row.addEventListener("focusout", () => bringOut(chosen));
  }

  let pending = 0;
  const drawAll = () => Promise.all(figures.map(draw)).then(() => { document.documentElement.dataset.drawn = "yes"; });
  window.addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(drawAll, 120); });
  drawAll();
})();
