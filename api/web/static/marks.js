// The gallery: which frames are chosen, and keys to move, choose and mark.
const marks = document.getElementById("marks");

function boxes() {
  return [...document.querySelectorAll(".gallery input[name=fkey]")];
}

function count() {
  const chosen = boxes().filter((box) => box.checked).length;
  document.getElementById("chosen").textContent = chosen ? `${chosen} chosen` : "No frame chosen";
}

if (marks) {
  document.addEventListener("change", (event) => {
    if (event.target.name === "fkey") count();
  });
  document.getElementById("choose-all").addEventListener("click", () => {
    const all = boxes();
    const wanted = !all.every((box) => box.checked);
    for (const box of all) box.checked = wanted;
    count();
  });
  // Without a chosen frame there is nothing to mark.
  marks.addEventListener("htmx:confirm", (event) => {
    if (event.target !== marks || marks.elements.everything.checked) return;
    if (!boxes().some((box) => box.checked)) {
      event.preventDefault();
      document.getElementById("marked").textContent = "Choose a frame first.";
    }
  });
}

// Once: the next mark is of the frames that are chosen again.
marks?.addEventListener("htmx:afterRequest", () => { marks.elements.everything.checked = false; });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const thumb = event.target.closest(".thumb");
  if (!thumb) return;
  const all = [...document.querySelectorAll(".thumb")];
  const place = all.indexOf(thumb);
  const columns = all.filter((each) => each.offsetTop === all[0].offsetTop).length;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const box = thumb.querySelector("input[name=fkey]");
  if (event.key in steps) {
    all[place + steps[event.key]]?.querySelector("a").focus();
  } else if (event.key === " " && box && event.target !== box) {
    box.click();
  } else if (event.key === "b" && marks) {
    if (box && !boxes().some((each) => each.checked)) box.checked = true;
    markWith(marks, "quality", "bad");
  } else {
    return;
  }
  event.preventDefault();
});
