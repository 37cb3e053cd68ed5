// Find: sliders and fields of one facet say the same; a filter of tags by name.
"use strict";

const form = document.getElementById("find");

function listed(facet, end) {
  return facet.dataset[end === "min" ? "low" : "high"].split(",");
}

function slider(facet, end) {
  return facet.querySelector(`input[data-end="${end}"]`);
}

// A slider at its own end asks for nothing: the field is empty then.
function fromSlider(moved) {
  const facet = moved.closest("[data-low]");
  const end = moved.dataset.end;
  const values = listed(facet, end);
  const other = slider(facet, end === "min" ? "max" : "min");
  const place = end === "min"
    ? Math.min(Number(moved.value), Number(other.value))
    : Math.max(Number(moved.value), Number(other.value));
  moved.value = place;
  moved.setAttribute("aria-valuetext", values[place]);
  const isOpen = end === "min" ? place === 0 : place === values.length - 1;
  facet.querySelector(`input[name^="${end}."]`).value = isOpen ? "" : values[place];
}

function number(text) {
  const plain = Number(text.replaceAll(",", ""));
  return Number.isNaN(plain) ? Date.parse(`${text}Z`) : plain;
}

function fromField(field) {
  const facet = field.closest("[data-low]");
  const end = field.name.slice(0, 3);
  const moved = facet && slider(facet, end);
  if (!moved) return;
  const values = listed(facet, end).map(number);
  const wanted = number(field.value);
  let place = end === "min" ? 0 : values.length - 1;
  if (field.value.trim() && !Number.isNaN(wanted)) {
    place = end === "min"
      ? values.findLastIndex((value) => value <= wanted)
      : values.findIndex((value) => value >= wanted);
    if (place < 0) place = end === "min" ? 0 : values.length - 1;
  }
  moved.value = place;
}

// In the phase of capture: before htmx reads the fields.
form.addEventListener("input", (event) => {
  const target = event.target;
  if (target.id === "filter") {
    event.stopPropagation();
    const wanted = target.value.trim().toLowerCase();
    for (const facet of form.querySelectorAll("[data-facet]")) {
      facet.hidden = !facet.dataset.facet.includes(wanted);
    }
    for (const group of form.querySelectorAll(".group")) {
      group.hidden = !group.querySelector("[data-facet]:not([hidden])");
      if (wanted) group.open = true;
    }
  } else if (target.dataset.end) {
    fromSlider(target);
  } else if (/^(min|max)\./.test(target.name)) {
    fromField(target);
  } else if (/^(has|without)\./.test(target.name) && target.checked) {
    // Both at once would be no frame.
    const other = target.name.replace(/^(has|without)/, (kind) => (kind === "has" ? "without" : "has"));
    form.elements[other].checked = false;
  } else if (/^(is|not)\./.test(target.name) && target.checked) {
    const other = target.name.replace(/^(is|not)/, (kind) => (kind === "is" ? "not" : "is"));
    for (const box of form.querySelectorAll(`input[name="${CSS.escape(other)}"]`)) {
      if (box.value === target.value) box.checked = false;
    }
  }
}, true);

// A field that searches the values of a text: htmx asks for the list, and no condition changes.
function isSearch(target) {
  return target.matches("[data-values]");
}

function settle() {
  steps.end();
  asks.cancel();
}

form.addEventListener("change", (event) => {
  const { target } = event;
  if (target.id === "filter" || target.name === "pin" || isSearch(target)) event.stopPropagation();
  else settle();
  // The server puts what is pinned first, with a histogram.
  if (target.name === "pin") location.assign(`/?${new URLSearchParams(filled())}`);
}, true);
form.addEventListener("submit", settle, true);

// Names and values of the fields that say something.
function filled() {
  return [...new FormData(form)].filter(([, value]) => value !== "");
}

// The server draws the paths; to set them costs a tenth of what it costs to exchange elements.
function draw({ matching, plots, numbers }) {
  document.getElementById("matching").textContent = matching;
  for (const [number, [within, beyond]] of Object.entries(plots)) {
    const plot = document.getElementById(`plot-${number}`);
    set(plot?.querySelector(".within"), within);
    set(plot?.querySelector(".beyond"), beyond);
  }
  for (const [number, frames] of Object.entries(numbers)) {
    const place = document.getElementById(`n-${number}`);
    if (place && place.textContent !== frames) place.textContent = frames;
  }
}

function set(path, drawn) {
  if (path && path.getAttribute("d") !== drawn) path.setAttribute("d", drawn);
}

// A slider's numbers come once for all its positions, when it begins to move: a move adds them up and
// draws, once for each picture of the screen. `table` is null where fields have to ask instead.
const steps = {
  moved: null,
  table: undefined,
  timer: 0,
  picture: 0,
  running: null,
  move(moved) {
    if (moved !== steps.moved) steps.begin(moved);
    else if (steps.table) steps.draw();
    else if (steps.table === null) asks.move();
  },
  begin(moved) {
    steps.end();
    asks.cancel();
    steps.moved = moved;
    // By a key the move has ended by then, and what it asks for is asked as after every change.
    steps.timer = setTimeout(steps.ask, 0);
  },
  async ask() {
    const running = new AbortController();
    steps.running = running;
    const facet = steps.moved.closest("[data-low]");
    const { end } = steps.moved.dataset;
    const field = facet.querySelector(`input[name^="${end}."]`).name;
    const values = listed(facet, end);
    const closing = end === "min" ? values.slice(1) : values.slice(0, -1).reverse();
    const others = filled().filter(([name]) => name !== field);
    const asked = new URLSearchParams([["field", field], ["values", closing.join()], ...others]);
    let table = null;
    try {
      const answer = await fetch(`/steps?${asked}`, {
        headers: { "HX-Request": "true" }, signal: running.signal,
      });
      if (answer.ok && answer.headers.get("content-type") === "application/json") {
        table = await answer.json();
      }
    } catch { // ended; or the server is away, which the end of the move will show
    }
    if (steps.running !== running) return;
    // Of another snapshot than the page shows, it may have other facets.
    const isCurrent = String(table?.snapshot) === document.getElementById("answer").dataset.snapshot;
    steps.table = isCurrent ? summed(table) : null;
    if (isCurrent) document.getElementById("problem").replaceChildren();
    steps.move(steps.moved);
  },
  draw() {
    steps.picture ||= requestAnimationFrame(() => {
      steps.picture = 0;
      const { dataset: { end }, value, max } = steps.moved;
      draw(at(steps.table, end === "min" ? Number(value) : max - value));
      document.dispatchEvent(new CustomEvent("framesift:drawn"));
    });
  },
  end() {
    clearTimeout(steps.timer);
    cancelAnimationFrame(steps.picture);
    steps.running?.abort();
    Object.assign(steps, { moved: null, table: undefined, picture: 0, running: null });
  },
};

// Frames are told at the last position that they fulfil: at each are those of all after it, too.
function summed(table) {
  const rows = [table.matching, ...Object.values(table.numbers)];
  for (const { counts } of Object.values(table.plots)) rows.push(...counts);
  for (const row of rows) {
    for (let place = row.length - 2; place >= 0; place -= 1) row[place] += row[place + 1];
  }
  return table;
}

const written = new Intl.NumberFormat("en-US");

// What `draw` draws, at one position.
function at({ matching, plots, numbers }, place) {
  const text = (row) => written.format(row[place] ?? 0);
  const drawn = ({ most, ranges, counts }) => {
    const [first, last] = ranges[place] ?? ranges[0];
    const frames = counts.map((row) => row[place]);
    const isWithin = (bin) => bin >= first && bin <= last;
    return [bars(frames, most, isWithin), bars(frames, most, (bin) => !isWithin(bin))];
  };
  const each = (entries, of) => Object.fromEntries(Object.entries(entries).map(([name, one]) => [name, of(one)]));
  return { matching: text(matching), plots: each(plots, drawn), numbers: each(numbers, text) };
}

const HEIGHT = 40;

// As the server draws them: api/web/find/facets.py.
function bars(frames, most, isDrawn) {
  const scale = most ? HEIGHT / Math.log1p(most) : 0;
  let path = "";
  for (const [bin, count] of frames.entries()) {
    if (count > 0 && isDrawn(bin)) {
      const height = Math.max(1, Math.log1p(count) * scale).toFixed(1);
      path += `M${bin}.5 ${HEIGHT}v-${height}`;
    }
  }
  return path;
}

// While a field is typed in, what it says is asked as soon as the answer before is there, or is late.
const asks = {
  EACH_MS: 120,
  LATE_MS: 500,
  timer: 0,
  began: -Infinity,
  running: null,
  isMoved: false,
  move() {
    asks.isMoved = true;
    if (asks.timer) return;
    const wait = asks.began + (asks.running ? asks.LATE_MS : asks.EACH_MS) - performance.now();
    if (wait > 0) asks.timer = setTimeout(asks.ask, wait);
    else asks.ask();
  },
  async ask() {
    asks.cancel();
    asks.began = performance.now();
    const running = new AbortController();
    asks.running = running;
    try {
      const answer = await fetch(`/drag?${new URLSearchParams(filled())}`, {
        headers: { "HX-Request": "true" }, signal: running.signal,
      });
      const isMoved = answer.ok && answer.headers.get("content-type") === "application/json";
      const told = await (isMoved ? answer.json() : answer.text());
      if (asks.running === running) {
        document.getElementById("problem").innerHTML = isMoved || answer.ok ? "" : told;
        if (isMoved) draw(told);
      }
    } catch { // cancelled; or the server is away, which the end of the drag will show
    }
    // An answer that another question took the place of says nothing of that one.
    if (asks.running !== running) return;
    asks.running = null;
    document.dispatchEvent(new CustomEvent("framesift:drawn"));
    clearTimeout(asks.timer);
    asks.timer = 0;
    if (asks.isMoved) asks.move();
  },
  cancel() {
    asks.running?.abort();
    asks.running = null;
    asks.isMoved = false;
    clearTimeout(asks.timer);
    asks.timer = 0;
  },
};

form.addEventListener("input", ({ target }) => {
  if (target.id === "filter" || target.name === "pin" || isSearch(target)) return;
  if (target.dataset.end) {
    steps.move(target);
  } else {
    steps.end();
    asks.move();
  }
});

// Lists that are searched are asked for again when an answer has changed the others' numbers.
form.addEventListener("htmx:afterRequest", (event) => {
  if (event.target !== form) return;
  for (const field of form.querySelectorAll("[data-values]")) {
    if (field.value.trim()) htmx.trigger(field, "again");
  }
});

// Down goes from the field into its list, up and down walk there, and up leads back.
form.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const facet = step && event.target.closest("fieldset.facet");
  const field = facet?.querySelector("[data-values]");
  if (!field) return;
  const walked = [field, ...facet.querySelectorAll(".values label:first-child input")];
  const place = walked.indexOf(event.target);
  if (place < 0) return;
  walked[place + step]?.focus();
  event.preventDefault();
});

// What somebody types as SQL stays, with the cursor, when an answer brings the copies anew.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const typed = target.id === "copies" && target.querySelector("textarea");
  if (!typed || typed.value === typed.defaultValue) return;
  const anew = fragment.querySelector("textarea");
  anew.value = typed.value;
  if (document.activeElement !== typed) return;
  const { selectionStart, selectionEnd } = typed;
  document.addEventListener("htmx:oobAfterSwap", () => {
    anew.focus();
    anew.setSelectionRange(selectionStart, selectionEnd);
  }, { once: true });
});

// On phones pictures come first: buttons open what stands beside and above them on wide screens.
const folds = [...document.querySelectorAll("[data-fold]")];

function fold(name, isOpen) {
  document.body.classList.toggle(`with-${name}`, isOpen);
  for (const button of folds) {
    if (button.dataset.fold === name) button.setAttribute("aria-expanded", String(isOpen));
  }
}

document.body.classList.add("folds");
for (const button of folds) {
  button.hidden = false;
  fold(button.dataset.fold, false);
  button.addEventListener("click", () => {
    fold(button.dataset.fold, !document.body.classList.contains(`with-${button.dataset.fold}`));
    folds.find((each) => each.dataset.fold === button.dataset.fold && each.offsetParent)?.focus();
  });
}
document.addEventListener("click", ({ target }) => {
  if (target.closest(".chips a.edit")) fold("conditions", true);
});
document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape") fold("conditions", false);
});

// The map is fetched when it is opened, and stays open from answer to answer.
document.addEventListener("toggle", ({ target }) => {
  const map = target.id === "where" && target.open && target.querySelector("[data-map]");
  if (map && !map.firstElementChild) htmx.ajax("GET", map.dataset.map, { target: map, swap: "innerHTML" });
}, true);
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.id === "where") fragment.querySelector("#where").open = target.open;
});
