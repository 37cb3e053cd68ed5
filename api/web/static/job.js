// A job's page: each event of the job fetches the part of the page that changes, and the logs.
"use strict";

const job = document.getElementById("job");

async function put(path, target) {
  const answer = await fetch(path, { headers: { "HX-Request": "true" } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) return;
  const text = await answer.text();
  const open = [...target.querySelectorAll("details")].map((each) => each.open);
  target.innerHTML = text;
  target.querySelectorAll("details").forEach((each, n) => { if (n in open) each.open = open[n]; });
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
      await put(job.dataset.output, document.getElementById("logs"));
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
