// Curves of trainings to zoom and to read: of a job, or of several side by side. They follow jobs that
// run. Without this script the server's own drawings and tables stay.
"use strict";

const charts = document.getElementById("charts");
const several = charts?.dataset.curves.split("job=").length > 2;
const EVERY_MS = 3000;

let drawn = []; // of each plot: its chart and figure
let shape = "";
let text = "";

// What is read and zoomed in one plot is so in all: they have the steps in common.
const together = {
  read: (step) => drawn.forEach(({ chart }) => chart.read(step)),
  zoom: (range) => drawn.forEach(({ chart }) => chart.zoom(range)),
};

function sentence(run) {
  const { steps, values } = run;
  const { min, max } = ends(values);
  return `${several ? `${run.job}: ` : ""}${told(values.at(-1))} at step ${toldStep(steps.at(-1))}, `
    + `between ${told(min)} and ${told(max)} since step ${toldStep(steps[0])}`;
}

function caption(plot, figure) {
  const title = document.createElement("strong");
  title.textContent = plot.name;
  const lines = plot.runs.map((run) => {
    const line = document.createElement("div");
    line.textContent = sentence(run);
    return line;
  });
  figure.querySelector("figcaption").replaceChildren(title, ...lines);
}

function figureOf(plot) {
  const figure = document.createElement("figure");
  figure.className = "card";
  figure.append(document.createElement("figcaption"));
  const area = document.createElement("div");
  area.tabIndex = 0;
  area.setAttribute("role", "group");
  area.setAttribute("aria-label", `${plot.name} by step; the arrow keys read values`);
  figure.append(area);
  charts.querySelector(".figures-of-runs").append(figure);
  const chart = new Chart(area, plot.runs.map((run) => (several ? run.job : plot.name)), together);
  return { chart, figure };
}

function zoom(factor) {
  for (const { chart } of drawn) {
    const { min, max } = chart.range;
    const middle = chart.at ?? (min + max) / 2;
    chart.zoom(factor === 0 ? chart.ends : {
      min: middle - (middle - min) * factor,
      max: middle + (max - middle) * factor,
    });
  }
}

function draw() {
  const { plots } = JSON.parse(text);
  const now = JSON.stringify(plots.map((plot) => [plot.name, plot.runs.map((run) => run.job)]));
  if (now !== shape) {
    for (const { figure } of drawn) figure.remove();
    charts.hidden = plots.length === 0;
    document.getElementById("job")?.classList.toggle("plotted", plots.length > 0);
    drawn = plots.map(figureOf);
  }
  const steps = ends(plots.flatMap((plot) => plot.runs.flatMap((run) => [run.steps[0], run.steps.at(-1)])));
  plots.forEach((plot, number) => {
    drawn[number].chart.show(plot.runs, steps);
    caption(plot, drawn[number].figure);
  });
  shape = now;
}

async function follow() {
  let running = true;
  try {
    const answer = document.hidden ? null : await fetch(charts.dataset.curves);
    if (answer && [401, 403, 404].includes(answer.status)) return;
    if (answer?.ok) {
      const before = text;
      text = await answer.text();
      running = JSON.parse(text).running;
      if (text !== before) draw();
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // fetch's, while the server restarts
  }
  if (running) setTimeout(follow, EVERY_MS);
}

if (charts) {
  for (const button of charts.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
  }
  new ResizeObserver(() => {
    for (const { chart } of drawn) if (chart.area.clientWidth !== chart.width) chart.draw();
  }).observe(charts);
  follow();
}
