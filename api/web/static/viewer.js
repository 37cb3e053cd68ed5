// A frame's pictures: zoom and pan, two layers side by side or in turns, the class under the pointer.
"use strict";

const views = [...document.querySelectorAll(".pictures")];
const [main, second] = views;
const under = document.getElementById("under");
const MOST = 16;
const TURN_MS = 600; // below three flashes a second
const at = { scale: 1, left: 0, top: 0 }; // left and top as shares of the view

function place() {
  at.left = Math.min(0, Math.max(1 - at.scale, at.left));
  at.top = Math.min(0, Math.max(1 - at.scale, at.top));
  const transform = at.scale === 1 ? ""
    : `translate(${at.left * 100}%, ${at.top * 100}%) scale(${at.scale})`;
  for (const picture of document.querySelectorAll(".pictures img")) picture.style.transform = transform;
  for (const view of views) view.classList.toggle("zoomed", at.scale > 1);
  if (at.scale > 1.5) sharpen();
}

function zoom(factor, x = 0.5, y = 0.5) {
  const scale = Math.min(MOST, Math.max(1, at.scale * factor));
  at.left = x - ((x - at.left) * scale) / at.scale;
  at.top = y - ((y - at.top) * scale) / at.scale;
  at.scale = scale;
  place();
}

// Every pixel of the files, once somebody looks closely.
function sharpen() {
  const sharp = (url) => url.replace("width=1280", "width=8192");
  for (const layer of document.querySelectorAll("input[name=layer]")) layer.value = sharp(layer.value);
  for (const picture of document.querySelectorAll(".pictures img")) {
    if (picture.dataset.source) picture.dataset.source = sharp(picture.dataset.source);
    const source = picture.getAttribute("src");
    if (source && sharp(source) !== source) picture.src = sharp(source);
  }
}

function share(event, view) {
  const box = view.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

for (const view of views) {
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && at.scale === 1) return; // the page scrolls
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.003), ...share(event, view));
  }, { passive: false });
  view.addEventListener("dblclick", (event) => {
    zoom(at.scale > 1 ? 1 / MOST : 3, ...share(event, view));
  });
  view.addEventListener("dragstart", (event) => event.preventDefault());
  view.addEventListener("pointerdown", (event) => {
    if (at.scale > 1) view.setPointerCapture(event.pointerId);
  });
  view.addEventListener("pointermove", (event) => {
    const box = view.getBoundingClientRect();
    if (view.hasPointerCapture(event.pointerId)) {
      at.left += event.movementX / box.width;
      at.top += event.movementY / box.height;
      place();
    }
    const [x, y] = share(event, view);
    tell((x - at.left) / at.scale, (y - at.top) / at.scale);
  });
}

// The class under the pointer: of the label, and of the prediction that is chosen.
const names = JSON.parse(under?.dataset.names ?? "{}");
const pixels = new Map([...document.querySelectorAll("[data-class]")].map((button) => [
  button.textContent.trim(), button.closest("li").querySelector(".number").textContent,
]));
const read = new Map();

// What tells a picture's colours, once it is there.
function colours(url) {
  if (!read.has(url)) {
    const picture = new Image();
    read.set(url, null);
    picture.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(picture, 0, 0);
      read.set(url, context);
    });
    picture.src = url;
  }
  return read.get(url);
}

function named(url, x, y) {
  const context = colours(url);
  if (!context) return null;
  const { width, height } = context.canvas;
  const [column, row] = [Math.floor(x * width), Math.floor(y * height)];
  const [red, green, blue] = context.getImageData(column, row, 1, 1).data;
  const colour = `#${[red, green, blue].map((each) => each.toString(16).padStart(2, "0")).join("")}`;
  return names[colour] ?? "another class";
}

function tell(x, y) {
  if (!under || !(x >= 0 && x < 1 && y >= 0 && y < 1)) return;
  const said = [];
  if ("label" in under.dataset) {
    const name = named(under.dataset.label, x, y);
    if (name) said.push(pixels.has(name) ? `${name}, ${pixels.get(name)} pixels` : name);
  }
  const prediction = layerLike("prediction:");
  if (prediction) {
    const url = prediction.value.replace("format=jpeg", "format=png").replace("width=8192", "width=1280");
    const name = named(url, x, y);
    if (name) said.push(`predicted: ${name}`);
  }
  under.textContent = said.join("; ");
}

// Two layers: the one that is chosen, and the label or the prediction beside it.
const layers = [...document.querySelectorAll("input[name=layer]")];

function layerLike(begin) {
  const chosen = layers.find((layer) => layer.checked);
  const model = chosen?.dataset.over.split(":").slice(1).join(":");
  const alike = layers.filter((layer) => layer.dataset.over.startsWith(begin));
  return alike.find((layer) => model && layer.dataset.over === begin + model) ?? alike[0];
}

function pairOf() {
  const chosen = layers.find((layer) => layer.checked);
  return chosen?.dataset.over === "label" ? layerLike("prediction:") : layerLike("label");
}

const overlaid = document.getElementById("overlay");
const turned = overlaid?.cloneNode();
let turns = 0;

function compare() {
  const pair = pairOf();
  if (!pair) return;
  const classes = new URLSearchParams(overlaid.getAttribute("src").split("?")[1]).get("classes");
  const source = pair.value + (classes ? `&classes=${encodeURIComponent(classes)}` : "");
  const image = document.getElementById("image");
  const over = second.hidden ? [turned] : [turned, second.lastElementChild];
  for (const picture of over) {
    if (picture.getAttribute("src") !== source) picture.src = source;
    picture.style.opacity = overlaid.style.opacity;
  }
  if (!second.hidden) {
    second.firstElementChild.src = image.getAttribute("src");
    second.lastElementChild.alt = `${pair.dataset.name} over the camera image`;
  }
  place();
}

function beside(button) {
  second.hidden = !second.hidden;
  main.parentElement.classList.toggle("two", !second.hidden);
  button.setAttribute("aria-pressed", String(!second.hidden));
  compare();
}

function inTurns(button) {
  if (turns) {
    clearInterval(turns);
    turns = 0;
    turned.remove();
    overlaid.style.visibility = "";
  } else {
    turned.removeAttribute("id");
    turned.className = "overlaid";
    turned.alt = "";
    overlaid.after(turned);
    compare();
    turns = setInterval(() => {
      const isTurned = overlaid.style.visibility === "hidden";
      overlaid.style.visibility = isTurned ? "" : "hidden";
      turned.style.visibility = isTurned ? "hidden" : "";
    }, TURN_MS);
  }
  button.setAttribute("aria-pressed", String(Boolean(turns)));
}

document.addEventListener("framesift:layer", compare);

const actions = {
  in: () => zoom(1.6), out: () => zoom(1 / 1.6), fit: () => zoom(1 / MOST), beside, flicker: inTurns,
};
const keys = { "+": "in", "=": "in", "-": "out", 0: "fit", s: "beside", f: "flicker" };

for (const button of document.querySelectorAll("[data-view]")) {
  button.hidden = ["beside", "flicker"].includes(button.dataset.view) && !pairOf();
  button.addEventListener("click", () => actions[button.dataset.view](button));
}
if (main.firstElementChild) document.getElementById("viewer").hidden = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea, select")) return;
  const button = document.querySelector(`[data-view="${keys[event.key]}"]`);
  if (button && !button.hidden) button.click();
});
