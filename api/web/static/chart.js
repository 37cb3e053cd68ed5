// A drawing of curves by step, in SVG: read by pointer and keys, zoomed along the steps.
"use strict";

const MARGIN = { left: 62, right: 12, top: 8, bottom: 24 };
const HEIGHT = 220;
const LEAST_DRAG = 6; // pixels; less is a click
const NEAR = 14; // pixels between steps from which on each has a dot
const DASHES = ["", "8 4", "2 3", "12 3 2 3", "5 2", "1 4"];

const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 3 }); // of steps, which have no size
const toldStep = (step) => (step === null || step === undefined ? "–" : whole.format(step));
const told = (value) => (value === null || value === undefined ? "–" : short.format(value));

function drawing(name, attributes = {}, parts = []) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...parts);
  return element;
}

// Round numbers between two others: 1, 2 or 5 times a power of ten apart, and no nearer than said.
function ticks(low, high, most, nearest = 0) {
  const least = Math.max((high - low) / most, nearest);
  const power = 10 ** Math.floor(Math.log10(least));
  const apart = [1, 2, 5, 10].find((times) => times * power >= least) * power;
  const first = Math.ceil(low / apart);
  const last = Math.floor(high / apart + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, number) => (first + number) * apart);
}

// How the line of a run looks, for the legend.
function sample(number) {
  const line = drawing("polyline", { class: `run${number}`, points: "0,5 26,5", "stroke-dasharray": dashes(number - 1) });
  return drawing("svg", { class: "sample", width: 32, height: 10, "aria-hidden": "true" }, [line]);
}

const dashes = (number) => DASHES[number % DASHES.length];

// The least and the greatest of some numbers; of none, 0.
function ends(values) {
  const [min, max] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  return values.length ? { min, max } : { min: 0, max: 0 };
}

// Ends of a range that is not empty.
const apart = (low, high, by) => (low < high ? [low, high] : [low - by, high + by]);

class Chart {
  // area: the element to draw in. labels: of each run. on: what to call with the step that is read
  // (null for none), and with the ends of the steps that are zoomed to.
  constructor(area, labels, on) {
    this.area = area;
    this.on = on;
    this.legend = document.createElement("table");
    this.legend.className = "legend";
    this.legend.setAttribute("aria-live", "polite");
    this.values = ["step", ...labels].map((label, number) => {
      const row = this.legend.insertRow();
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = label;
      if (number) head.prepend(sample(number));
      row.append(head);
      const value = row.insertCell();
      value.textContent = told(null);
      return value;
    });
    this.picture = drawing("svg", { class: "chart", height: HEIGHT, "aria-hidden": "true" });
    area.append(this.picture, this.legend);
    this.picture.addEventListener("pointermove", (event) => this.#moved(event));
    this.picture.addEventListener("pointerleave", (event) => {
      if (!this.drag && event.pointerType === "mouse") this.on.read(null); // a finger's values stay
    });
    this.picture.addEventListener("pointerdown", (event) => this.#pressed(event));
    this.picture.addEventListener("pointerup", (event) => this.#released(event));
    this.picture.addEventListener("pointercancel", () => this.#select(null));
    this.picture.addEventListener("dblclick", () => this.on.zoom(this.ends));
    area.addEventListener("keydown", (event) => this.#key(event));
  }

  // runs: of each, its steps, rising, and its values. ends: of the steps of all plots.
  show(runs, ends) {
    const zoomed = this.range && (this.range.min > this.ends.min || this.range.max < this.ends.max);
    this.runs = runs.map(({ steps, values }) => steps
      .map((step, number) => [step, values[number]])
      .filter(([, value]) => Number.isFinite(value)));
    this.steps = [...new Set(this.runs.flatMap((run) => run.map(([step]) => step)))].sort((a, b) => a - b);
    this.ends = ends;
    if (!zoomed) this.range = this.ends;
    this.draw();
  }

  zoom(range) {
    if (!this.ends) return;
    const min = Math.max(range.min, this.ends.min);
    const max = Math.min(range.max, this.ends.max);
    if (min < max) this.range = { min, max };
    this.draw();
  }

  // Read the values at the logged step nearest to one; of a run that did not log then, its last.
  read(step) {
    if (!this.ends) return;
    this.at = step === null ? null : this.#nearest(step);
    const points = this.runs.map((run) => this.#last(run));
    const texts = [toldStep(this.at), ...points.map((point) => told(point?.[1]))];
    texts.forEach((text, number) => { this.values[number].textContent = text; });
    this.pointer.replaceChildren();
    if (this.at === null || this.at < this.range.min || this.at > this.range.max) return;
    const x = this.#x(this.at);
    this.pointer.append(drawing("line", { class: "at", x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    points.forEach((point, number) => {
      if (point && point[0] >= this.range.min) this.pointer.append(this.#dot(number, ...point, 4.5));
    });
  }

  #last(run) {
    const ended = this.at === null || !run.length || this.at > run.at(-1)[0];
    return ended ? undefined : run.findLast(([step]) => step <= this.at);
  }

  draw() {
    if (!this.ends) return;
    this.width = Math.max(this.area.clientWidth, 160);
    this.picture.setAttribute("width", this.width);
    const shown = this.runs.map((run) => this.#around(run));
    const { min, max } = ends(shown.flat().map(([, value]) => value));
    const [low, high] = apart(min, max, Math.max(Math.abs(min), Math.abs(max)) / 10 || 1);
    this.rise = { min: low - (high - low) / 20, max: high + (high - low) / 20 };
    this.pointer = drawing("g");
    this.selected = drawing("rect", { class: "selected", y: MARGIN.top, height: HEIGHT - MARGIN.top - MARGIN.bottom, width: 0 });
    this.picture.replaceChildren(...this.#grid(), ...this.#lines(shown), this.selected, this.pointer);
    this.read(this.at ?? null);
  }

  #grid() {
    const { left, right, top, bottom } = MARGIN;
    const [first, last] = apart(this.range.min, this.range.max, 0.5);
    const across = ticks(first, last, Math.max(this.width / 90, 2), 1).flatMap((step) => {
      const x = this.#x(step);
      return [
        drawing("line", { class: "grid", x1: x, x2: x, y1: top, y2: HEIGHT - bottom }),
        drawing("text", { x, y: HEIGHT - 6, "text-anchor": "middle" }, [toldStep(step)]),
      ];
    });
    const up = ticks(this.rise.min, this.rise.max, 5).flatMap((value) => {
      const y = this.#y(value);
      return [
        drawing("line", { class: "grid", x1: left, x2: this.width - right, y1: y, y2: y }),
        drawing("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, [told(value)]),
      ];
    });
    return [...across, ...up];
  }

  #lines(shown) {
    // A view of its own cuts off what lies beyond the steps shown.
    const view = drawing("svg", {
      x: MARGIN.left - 6, width: this.width - MARGIN.left - MARGIN.right + 12, y: 0, height: HEIGHT,
      viewBox: `${MARGIN.left - 6} 0 ${this.width - MARGIN.left - MARGIN.right + 12} ${HEIGHT}`,
    });
    shown.forEach((run, number) => {
      const points = run.map(([step, value]) => `${this.#x(step).toFixed(1)},${this.#y(value).toFixed(1)}`);
      view.append(drawing("polyline", {
        class: `run${number + 1}`, points: points.join(" "), "stroke-dasharray": dashes(number),
      }));
      if (run.length * NEAR < this.width) view.append(...run.map(([step, value]) => this.#dot(number, step, value, 2.5)));
    });
    return [view];
  }

  #dot(number, step, value, r) {
    return drawing("circle", { class: `run${number + 1}`, cx: this.#x(step), cy: this.#y(value), r });
  }

  // The points of a run within the steps shown, and the next one on both sides.
  #around(run) {
    const from = run.findIndex(([step]) => step >= this.range.min);
    const to = run.findLastIndex(([step]) => step <= this.range.max);
    return from < 0 || to < 0 ? [] : run.slice(Math.max(from - 1, 0), to + 2);
  }

  #x(step) {
    const [first, last] = apart(this.range.min, this.range.max, 0.5);
    return MARGIN.left + (step - first) / (last - first) * (this.width - MARGIN.left - MARGIN.right);
  }

  #y(value) {
    const { min, max } = this.rise;
    return MARGIN.top + (max - value) / (max - min) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  }

  // The step at a place on the screen, within those shown.
  #step(event) {
    const x = event.clientX - this.picture.getBoundingClientRect().left - MARGIN.left;
    const share = Math.min(Math.max(x / (this.width - MARGIN.left - MARGIN.right), 0), 1);
    return this.range.min + share * (this.range.max - this.range.min);
  }

  #nearest(step) {
    const within = this.steps.filter((of) => of >= this.range.min && of <= this.range.max);
    return within.reduce((best, of) => (Math.abs(of - step) < Math.abs(best - step) ? of : best), within[0] ?? null);
  }

  #moved(event) {
    this.on.read(this.#step(event));
    if (this.drag) this.#select(event);
  }

  #pressed(event) {
    if (event.button !== 0) return;
    this.drag = event;
    this.on.read(this.#step(event)); // a tap moves nothing
    this.picture.setPointerCapture(event.pointerId);
  }

  #released(event) {
    const drag = this.drag;
    this.#select(null);
    if (!drag || Math.abs(event.clientX - drag.clientX) < LEAST_DRAG) return;
    const [min, max] = [this.#step(drag), this.#step(event)].sort((a, b) => a - b);
    this.on.zoom({ min, max });
  }

  #select(event) {
    if (!event) this.drag = null;
    const [from, to] = event ? [this.#x(this.#step(this.drag)), this.#x(this.#step(event))].sort((a, b) => a - b) : [0, 0];
    this.selected.setAttribute("x", from);
    this.selected.setAttribute("width", to - from);
  }

  // The arrow keys read one logged step after the other.
  #key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const from = this.steps.findIndex((step) => step >= this.range.min);
    const to = this.steps.findLastIndex((step) => step <= this.range.max);
    const now = this.steps.indexOf(this.at);
    const at = now < 0 ? (by > 0 ? from : to) : now + by;
    this.on.read(this.steps[Math.min(Math.max(at, from), to)]);
  }
}
