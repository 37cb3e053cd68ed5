// A proposal of frames: totals follow the ticks; arrows move from frame to frame, space ticks.
"use strict";

const number = new Intl.NumberFormat("en");

function count(form) {
  const boxes = [...document.querySelectorAll(`input[form=${form.id}][type=checkbox]`)];
  const kept = boxes.filter((box) => box.checked).map((box) => box.closest(".thumb"));
  form.querySelector("[data-kept]").textContent = number.format(kept.length);
  const scenes = new Set(kept.map((one) => one.dataset.scene)).size;
  form.querySelector("[data-scenes]").textContent = number.format(scenes);
  form.querySelector("[data-noun]").textContent = scenes === 1 ? "scene" : "scenes";
  for (const cell of document.querySelectorAll(`[data-totals=${form.id}] [data-class]`)) {
    const having = kept.filter((one) => one.dataset.classes.split(" ").includes(cell.dataset.class));
    cell.textContent = number.format(having.length);
  }
  return boxes;
}

for (const form of document.querySelectorAll("form.proposal")) {
  const boxes = count(form); // a browser that goes back has its ticks again
  for (const box of boxes) box.addEventListener("change", () => count(form));
  const all = form.querySelector("[data-all]");
  all.hidden = false;
  all.addEventListener("click", () => {
    const wanted = !boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = wanted;
    count(form);
  });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const thumb = event.target.closest(".kept .thumb");
  if (!thumb) return;
  const all = [...document.querySelectorAll(".kept .thumb")];
  const place = all.indexOf(thumb);
  const row = [...thumb.parentElement.children];
  const columns = row.filter((each) => each.offsetTop === row[0].offsetTop).length;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const box = thumb.querySelector("input[type=checkbox]");
  if (event.key in steps) all[place + steps[event.key]]?.querySelector("a").focus();
  else if (event.key === " " && event.target !== box) box.click();
  else return;
  event.preventDefault();
});
