// Curves of trainings to zoom and to read, drawn by uPlot: of a job, or of several side by side. They
// follow jobs that run. Without this script the server's own drawings and tables stay.
"use strict";

const charts = document.getElementById("charts");
const several = charts?.dataset.curves.split("job=").length > 2;
const EVERY_MS = 3000;
const HEIGHT = 220;
const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3], [5, 2], [1, 4]];
const FONT = "12px system-ui, sans-serif";

const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const told = (value) => (value === null || value === undefined ? "–" : short.format(value));
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let drawn = []; // of each plot: name, chart, figure, and the ends of all its steps
let shape = "";
let text = "";

function options(plot, width) {
  const [soft, line] = [colour("--soft"), colour("--line")];
  const axis = { stroke: soft, font: FONT, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  return {
    width,
    height: HEIGHT,
    scales: { x: { time: false } },
    // What the mouse reads and zooms in one plot, it does in all: they have the steps in common.
    cursor: {
      sync: { key: "steps", scales: ["x", null] },
      drag: { x: true, y: false },
      points: { size: 9, fill: (_, series) => colour(`--run${series}`) },
      hover: { prox: null, skip: [undefined, null] },
    },
    axes: [
      { ...axis, values: (_, steps) => steps.map(told) },
      { ...axis, size: 62, values: (_, values) => values.map(told) },
    ],
    series: [
      { label: "step", value: (_, step) => told(step) },
      ...plot.runs.map((run, number) => ({
        label: several ? run.job : plot.name,
        stroke: colour(`--run${number + 1}`),
        dash: DASHES[number],
        width: 2,
        points: { fill: colour("--card") },
        spanGaps: true,
        value: (_, value) => told(value),
      })),
    ],
  };
}

function sentence(run) {
  const { steps, values } = run;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${several ? `${run.job}: ` : ""}${told(values.at(-1))} at step ${told(steps.at(-1))}, `
    + `between ${told(low)} and ${told(high)} since step ${told(steps[0])}`;
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

const tabled = (plot) => uPlot.join(plot.runs.map((run) => [run.steps, run.values]));

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
  const chart = new uPlot(options(plot, area.clientWidth), tabled(plot), area);
  area.querySelector(".u-legend").setAttribute("aria-live", "polite");
  area.addEventListener("keydown", (event) => read(chart, event));
  caption(plot, figure);
  return { name: plot.name, chart, figure, ends: ends(chart) };
}

// Of the data, since uPlot sets its scales only after the script's turn.
function ends(chart) {
  const steps = chart.data[0];
  return { min: steps[0], max: steps.at(-1) };
}

// The arrow keys move the cursor from one logged step to the next.
function read(chart, event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const steps = chart.data[0];
  const { min, max } = chart.scales.x;
  const from = steps.findIndex((step) => step >= min);
  const to = steps.findLastIndex((step) => step <= max);
  const now = chart.cursor.idx;
  const at = now === null || now === undefined ? (by > 0 ? from : to) : now + by;
  const next = Math.min(Math.max(at, from), to);
  chart.setCursor({ left: chart.valToPos(steps[next], "x"), top: HEIGHT / 3 });
}

function zoom(factor) {
  for (const { chart, ends: whole } of drawn) {
    const { min, max } = chart.scales.x;
    const middle = chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, "x") : (min + max) / 2;
    const range = factor === 0 ? whole : {
      min: Math.max(whole.min, middle - (middle - min) * factor),
      max: Math.min(whole.max, middle + (max - middle) * factor),
    };
    if (range.max > range.min) chart.setScale("x", range);
  }
}

function rebuild(plots) {
  for (const { chart, figure } of drawn) {
    chart.destroy();
    figure.remove();
  }
  charts.hidden = plots.length === 0;
  document.getElementById("job")?.classList.toggle("plotted", plots.length > 0);
  drawn = plots.map(figureOf);
}

// New values of the same runs: who has zoomed in stays there.
function renew(plots) {
  plots.forEach((plot, number) => {
    const each = drawn[number];
    const { min, max } = each.chart.scales.x;
    const zoomed = min > each.ends.min || max < each.ends.max;
    each.chart.setData(tabled(plot), true);
    each.ends = ends(each.chart);
    if (zoomed) each.chart.setScale("x", { min, max });
    caption(plot, each.figure);
  });
}

function draw(again = false) {
  const { plots } = JSON.parse(text);
  const now = JSON.stringify(plots.map((plot) => [plot.name, plot.runs.map((run) => run.job)]));
  if (again || now !== shape) rebuild(plots);
  else renew(plots);
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (text) draw(true); });
  new ResizeObserver(() => {
    for (const { chart, figure } of drawn) {
      const width = figure.lastElementChild.clientWidth;
      if (width !== chart.width) chart.setSize({ width, height: HEIGHT });
    }
  }).observe(charts);
  follow();
}
