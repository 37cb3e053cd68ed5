// What every page shares. htmx asks; this keeps URLs short, clears old problems, and copies texts.
"use strict";

// A field that is empty says nothing: it stays out of the URL.
document.addEventListener("htmx:configRequest", (event) => {
  const { parameters, verb } = event.detail;
  if (verb !== "get") return;
  for (const name of [...parameters.keys()]) {
    if (parameters.getAll(name).every((value) => value === "")) parameters.delete(name);
  }
});

// An error of a form is shown in the form, where it has a place for it.
document.addEventListener("htmx:beforeSwap", (event) => {
  const place = event.detail.isError && event.detail.requestConfig.elt.closest("form")?.querySelector(".here");
  if (place) event.detail.target = place;
});

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  const form = detail.elt.closest("form");
  form?.querySelector(".here")?.replaceChildren();
  for (const field of form?.querySelectorAll("[aria-invalid]") ?? []) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  for (const said of form?.querySelectorAll(".of-field") ?? []) said.remove();
});

// An error of one field of the form stands below that field, too, which is opened and focused.
document.addEventListener("htmx:afterSwap", ({ target }) => {
  const said = target instanceof Element && target.matches(".here") && target.querySelector("[data-field]");
  if (!said) return;
  const fields = [...said.closest("form").querySelectorAll(`[name="${said.dataset.field}"]:not([type=hidden])`)];
  const field = fields.find((one) => one.value) ?? fields[0];
  if (!field) return;
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (!field.checkVisibility()) return;
  const below = document.createElement("p");
  below.className = "problem of-field";
  below.id = `of-${said.closest("form").elements.kind?.value ?? "form"}-${said.dataset.field}`;
  below.textContent = said.lastChild.textContent.trim();
  (field.closest("label") ?? field).after(below);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", below.id);
  field.focus();
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) document.getElementById("problem").replaceChildren();
});

document.addEventListener("htmx:sendError", () => {
  const said = document.createElement("p");
  said.className = "problem";
  said.textContent = "The server does not answer; what you changed is asked again with the next change.";
  document.getElementById("problem").replaceChildren(said);
});

// A frame without a prediction shows its image alone.
document.addEventListener("error", ({ target }) => {
  if (target instanceof Element && target.matches("img.over")) target.remove();
}, true);

// Times stand in UTC as they come; here they are in the reader's zone, with the exact one on hover.
const inZone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function localize(part) {
  for (const time of part.querySelectorAll("time[datetime]:not([data-zone])")) {
    time.textContent = inZone.format(new Date(time.dateTime));
    time.dataset.zone = "local";
  }
}

localize(document);
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) if (node.firstElementChild) localize(node);
  }
}).observe(document.body, { childList: true, subtree: true });

// <button data-bare>: takes what lies over the thumbnails away, and brings it back.
function toggleBare() {
  const isBare = document.body.classList.toggle("bare");
  for (const button of document.querySelectorAll("[data-bare]")) button.setAttribute("aria-pressed", String(isBare));
}

document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-bare]")) toggleBare();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  if (event.key === "o" && document.querySelector("[data-bare]")) toggleBare();
  else if (event.key === "z") document.getElementById("undo")?.click();
});

// The last marks of this tab stay there to be undone, on each page that marks, until something else is marked.
const MARKED = `framesift.marked.${document.body.dataset.user}`;
document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (target.id !== "marked") return;
  try {
    if (target.querySelector("#undo")) sessionStorage.setItem(MARKED, target.innerHTML);
    else sessionStorage.removeItem(MARKED);
  } catch { // they are too many, or the browser keeps nothing: the page alone has them
  }
});

function lastMarks() {
  try {
    return sessionStorage.getItem(MARKED);
  } catch {
    return null;
  }
}

const marked = document.getElementById("marked");
const last = marked && lastMarks();
if (last) {
  marked.innerHTML = last;
  marked.querySelector(".done").prepend("Last: ");
  htmx.process(marked);
}

// <button data-another>: one more tag to mark frames with, until they are marked.
const another = document.querySelector("[data-another]");
if (another) another.hidden = false;
another?.addEventListener("click", () => {
  const rows = another.form.querySelectorAll(".mark");
  const row = rows[0].cloneNode(true);
  for (const field of row.querySelectorAll("input")) {
    field.value = "";
    field.required = false;
  }
  rows[rows.length - 1].after(row);
  row.querySelector("input").focus();
});
another?.form.addEventListener("htmx:afterRequest", (event) => {
  if (event.target === another.form && event.detail.successful) oneTag(another.form);
});

function oneTag(marking) {
  for (const row of [...marking.querySelectorAll(".mark")].slice(1)) row.remove();
}

// Marks with this tag alone.
function markWith(marking, tag, value) {
  oneTag(marking);
  marking.elements.tag.value = tag;
  marking.elements.value.value = value;
  marking.requestSubmit();
}

// <button data-copy="ID">: copies the text of the element of that id.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const text = source.value ?? source.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard over plain HTTP from another host: select it, the user copies
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return;
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
});

// <input data-narrows="ID">: of that list, the items that have what is typed, and those that are ticked.
document.addEventListener("input", ({ target }) => {
  if (!target.matches("[data-narrows]")) return;
  const text = target.value.trim().toLowerCase();
  for (const item of document.getElementById(target.dataset.narrows).children) {
    item.hidden = !item.textContent.toLowerCase().includes(text) && !item.querySelector(":checked");
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("[data-narrows]")) event.preventDefault(); // it sends no form
});
