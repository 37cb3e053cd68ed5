// A job's forms: the staging plan of the chosen dataset, and how long earlier jobs like it took.
"use strict";

const ALIKE = [
  "kind", "dataset", "split", "model", "backend", "workers", "ranks", "height", "width",
  "epochs", "max_steps", "batch_size",
];
const [PREFLIGHT] = document.querySelectorAll("[name=kind][value=preflight]"); // it reads no split
const plans = new Map(); // several forms have one dataset: its plan is asked for once

async function part(path) {
  const answer = await fetch(path, { headers: { "HX-Request": "true" } });
  if (answer.status === 401) location.reload();
  return answer.ok ? answer.text() : "";
}

async function plan(select) {
  const dataset = select.value;
  if (!dataset) return;
  if (!plans.has(dataset)) plans.set(dataset, part(`/new-job/plan?${new URLSearchParams({ dataset })}`));
  const asked = plans.get(dataset);
  let text = "";
  try {
    text = await asked;
  } catch { /* the server is away */ }
  if (!text && plans.get(dataset) === asked) plans.delete(dataset); // asked for again with the next choice
  if (select.value === dataset) select.form.querySelector(".plan").innerHTML = text;
}

async function estimate(form) {
  const fields = new FormData(form);
  const asked = new URLSearchParams();
  for (const name of ALIKE) if (fields.get(name)) asked.set(name, fields.get(name));
  const { frames } = form.querySelector(".estimate").dataset; // of a question, which is no dataset yet
  if (frames) {
    asked.delete("dataset");
    asked.set("frames", frames);
  }
  const query = asked.toString();
  form.dataset.estimated = query;
  let text = "";
  try {
    text = await part(`/new-job/estimate?${query}`);
  } catch { /* the server is away */ }
  if (form.dataset.estimated !== query) return;
  form.querySelector(".estimate").innerHTML = text;
  for (const { dataset, value } of form.querySelectorAll("[data-default]")) standFor(form, dataset.default, value);
}

// What an empty field stands for follows the form's other fields; an example behind it stays.
function standFor(form, name, value) {
  for (const field of form.querySelectorAll(`[name="${name}"]`)) {
    if (field.options?.[0]?.value === "") field.options[0].textContent = `default: ${value}`;
    else if (field.placeholder?.startsWith("default: ")) {
      const example = field.placeholder.indexOf("; such as ");
      field.placeholder = `default: ${value}${example < 0 ? "" : field.placeholder.slice(example)}`;
    }
  }
}

function chosen(select) {
  plan(select);
  estimate(select.form);
}

for (const select of document.querySelectorAll("[data-planned]")) {
  chosen(select);
  select.addEventListener("htmx:afterSwap", () => chosen(select)); // a search brought other datasets
  select.form.addEventListener("change", ({ target }) => {
    if (target === select) chosen(select);
    else if (ALIKE.includes(target.name)) estimate(select.form);
  });
}

PREFLIGHT?.form.addEventListener("change", ({ target }) => {
  if (ALIKE.includes(target.name)) estimate(PREFLIGHT.form);
});

for (const { form } of document.querySelectorAll("form:has([data-frames]) [name=kind]")) {
  estimate(form);
  form.addEventListener("change", ({ target }) => {
    if (ALIKE.includes(target.name)) estimate(form);
  });
}
