// A frame: what lies over it, the way through the frames found, and keys.
"use strict";

const overlay = document.getElementById("overlay");
const opacity = document.getElementById("opacity");

// At alpha 1 the overlay is the label where it has a class, and the image elsewhere: laid over the
// image by CSS it is the blend of both.
if (overlay && opacity) {
  const show = () => {
    overlay.style.opacity = opacity.value / 100;
    document.dispatchEvent(new CustomEvent("framesift:layer"));
  };
  opacity.addEventListener("input", show);
  show();
  const buttons = [...document.querySelectorAll("[data-class]")];
  const draw = () => {
    const chosen = buttons.filter((button) => button.getAttribute("aria-pressed") === "true");
    const classes = chosen.map((button) => button.dataset.class).join(",");
    overlay.src = overlay.dataset.source + (classes ? `&classes=${encodeURIComponent(classes)}` : "");
    document.dispatchEvent(new CustomEvent("framesift:layer"));
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
    // After the mouse, arrows walk again; after keys, they choose the next layer.
    layer.addEventListener("click", (event) => { if (event.detail) layer.blur(); });
    layer.addEventListener("change", () => {
      overlay.dataset.source = layer.value;
      overlay.alt = `${layer.dataset.name} over the camera image`;
      draw();
      keep(layer.dataset.over);
    });
  }
}

// The layer stays from frame to frame: it stands in the URLs of the frames to walk to.
function keep(over) {
  for (const link of document.querySelectorAll("[data-walk], .neighbour[href], #previous, #next")) {
    link.href = withOver(link.href, over);
  }
  history.replaceState(history.state, "", withOver(location.href, over));
}

function withOver(href, over) {
  const url = new URL(href);
  url.searchParams.set("over", over);
  return url;
}

// The pictures of the frames beside this one are there before somebody goes to them.
addEventListener("load", () => {
  const shown = ["image", "overlay"].map((id) => document.getElementById(id)).filter(Boolean);
  for (const link of document.querySelectorAll("[data-walk]")) {
    for (const picture of shown) {
      const { fkey } = picture.parentElement.dataset;
      new Image().src = picture.getAttribute("src").replace(fkey, link.dataset.walk);
    }
  }
});

const marks = document.getElementById("marks");

function mark(value) {
  markWith(marks, "quality", value);
}

marks?.addEventListener("htmx:afterRequest", (event) => {
  if (event.target !== marks || !event.detail.successful) return;
  for (const name of ["tag", "value", "note"]) {
    marks.elements[`${name}_was`].value = marks.elements[name].value;
  }
});

for (const button of document.querySelectorAll("[data-mark]")) {
  button.addEventListener("click", () => mark(button.dataset.mark));
}

document.addEventListener("keydown", (event) => {
  const writes = event.target.matches("input, textarea, select");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const [back, on] = ["previous", "next"].map((id) => document.getElementById(id));
  const [before, behind] = document.getElementById("place")
    ? ["found-previous", "found-next"].map((id) => document.getElementById(id)) : [back, on];
  if (event.key === "ArrowLeft") before?.click();
  else if (event.key === "ArrowRight") behind?.click();
  else if (event.key === ",") back?.click();
  else if (event.key === ".") on?.click();
  else if (marks && event.key === "b") mark("bad");
  else if (marks && event.key === "c") mark("");
});
