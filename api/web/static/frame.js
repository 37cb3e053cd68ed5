// A frame: the label's opacity, one class alone, and keys.
"use strict";

const overlay = document.getElementById("overlay");
const opacity = document.getElementById("opacity");

// At alpha 1 the overlay is the label where it has a class, and the image elsewhere: laid over the
// image by CSS it is the blend of both.
if (overlay && opacity) {
  const show = () => { overlay.style.opacity = opacity.value / 100; };
  opacity.addEventListener("input", show);
  show();
  const buttons = [...document.querySelectorAll("[data-class]")];
  const draw = () => {
    const chosen = buttons.filter((button) => button.getAttribute("aria-pressed") === "true");
    const classes = chosen.map((button) => button.dataset.class).join(",");
    overlay.src = overlay.dataset.source + (classes ? `&classes=${encodeURIComponent(classes)}` : "");
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!pressed));
      draw();
    });
  }
  document.getElementById("all-classes")?.addEventListener("click", () => {
    for (const button of buttons) button.setAttribute("aria-pressed", "false");
    draw();
  });
  for (const layer of document.querySelectorAll("input[name=layer]")) {
    layer.addEventListener("change", () => {
      overlay.dataset.source = layer.value;
      overlay.alt = `${layer.dataset.name} over the camera image`;
      draw();
    });
  }
}

const marks = document.getElementById("marks");

function mark(value) {
  marks.elements.tag.value = "quality";
  marks.elements.value.value = value;
  marks.requestSubmit();
}

for (const button of document.querySelectorAll("[data-mark]")) {
  button.addEventListener("click", () => mark(button.dataset.mark));
}

document.addEventListener("keydown", (event) => {
  const writes = event.target.matches("input, textarea, select");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "ArrowLeft") document.getElementById("previous")?.click();
  else if (event.key === "ArrowRight") document.getElementById("next")?.click();
  else if (marks && event.key === "b") mark("bad");
  else if (marks && event.key === "c") mark("");
});
