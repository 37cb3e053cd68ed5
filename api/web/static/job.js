// A job's page: each event of the job fetches the part of the page that changes, and the logs.
"use strict";

const job = document.getElementById("job");
const logs = document.getElementById("logs");

async function part(path) {
  const answer = await fetch(path, { headers: { "HX-Request": "true" } });
  if (answer.status === 401) location.reload();
  return answer.ok ? answer.text() : null;
}

async function put(path, target) {
  const text = await part(path);
  if (text !== null) target.innerHTML = text;
}

// A log is read from its end, which it grows at; where the user has scrolled up, it stays.
function lastLine() {
  const text = logs.querySelector("pre");
  if (text) text.scrollTop = text.scrollHeight;
}

async function putLog() {
  const before = logs.querySelector("pre");
  const top = before ? before.scrollTop : 0;
  const scrolledUp = before && top + before.clientHeight < before.scrollHeight - 4;
  const form = logs.querySelector("form");
  const asked = () => {
    const fields = new URLSearchParams(form ? new FormData(form) : { log: "" });
    if (!fields.get("find")) fields.delete("find");
    return fields.toString();
  };
  const query = asked();
  const text = await part(`${job.dataset.output}?${query}`);
  // Another log or text chosen meanwhile is on its way already.
  if (text === null || asked() !== query) return;
  const fresh = document.createElement("div");
  fresh.innerHTML = text;
  // The list of logs and the text stay as they are while they are in use.
  const inUse = form && form.contains(document.activeElement);
  if (inUse) logs.querySelector("#log-end").replaceWith(fresh.querySelector("#log-end"));
  else logs.replaceChildren(...fresh.childNodes);
  htmx.process(logs);
  const now = logs.querySelector("pre");
  if (scrolledUp && now) now.scrollTop = top;
  else lastLine();
}

// A cell of the confusion matrix names its classes once it is pointed at or focused: 1,600 cells with
// the names of two classes each would be most of the page.
function nameCell({ target }) {
  const link = target.closest?.(".matrix td a");
  if (!link || link.dataset.named) return;
  const cell = link.parentElement;
  const predicted = link.closest("table").rows[0].cells[cell.cellIndex].textContent;
  link.title = `${cell.parentElement.cells[0].textContent} taken for ${predicted}: ${link.title}`;
  link.dataset.named = "yes";
}

document.addEventListener("pointerover", nameCell);
document.addEventListener("focusin", nameCell);

if (logs) {
  lastLine();
  logs.addEventListener("htmx:afterSwap", lastLine);
}

if (job && !("ended" in job.dataset)) {
  const events = new EventSource(job.dataset.events);
  let busy = false;
  let again = false;
  const follow = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      await put(job.dataset.part, job);
      await putLog();
    } catch { /* the server restarts: the next event comes when it is back */ }
    busy = false;
    if (again) { again = false; follow(); }
  };
  events.addEventListener("job", (event) => {
    follow();
    const { name, state } = JSON.parse(event.data);
    document.title = `${name}: ${state} · Framesift`;
    if (["done", "failed", "cancelled"].includes(state)) events.close();
  });
}
