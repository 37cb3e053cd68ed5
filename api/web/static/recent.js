// Recent questions of a user, newest first: this browser alone keeps them, and sends them nowhere.
"use strict";

{
  const MOST = 12;
  const STOOD_MS = 4000; // a question that stands so long, or that is left, was meant
  const NOT_ASKED = ["sort", "over", "truth", "predicted", "size", "caption", "pin"]; // api/web/find/view.py
  const place = document.getElementById("recent");
  const key = `framesift.recent.${place.dataset.user}`;

  const load = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
      const isOne = (one) => typeof one?.query === "string" && typeof one.text === "string";
      return Array.isArray(kept) ? kept.filter(isOne).slice(0, MOST) : [];
    } catch { // storage is closed to pages, or holds what another program wrote
      return [];
    }
  };

  const save = (questions) => {
    try {
      if (questions.length) localStorage.setItem(key, JSON.stringify(questions.slice(0, MOST)));
      else localStorage.removeItem(key);
    } catch { /* storage is closed or full: nothing is kept */ }
  };

  const conditions = (query) => {
    const fields = new URLSearchParams(query);
    for (const name of NOT_ASKED) fields.delete(name);
    return fields.toString();
  };

  const remember = () => {
    const query = location.search.slice(1);
    let text = document.querySelector("#answer .sentence")?.textContent.trim();
    // It is asked of the newest catalog again, unless it names a snapshot.
    if (!new URLSearchParams(query).has("at")) text = text?.replace(/, as of snapshot \d+$/, "");
    const asked = conditions(query);
    if (!asked || !text) return;
    save([{ query, text }, ...load().filter((one) => conditions(one.query) !== asked)]);
  };

  const show = () => {
    const questions = load();
    place.hidden = !questions.length || location.search.length > 1;
    place.querySelector("ul").replaceChildren(...questions.map((one) => {
      const link = document.createElement("a");
      link.href = `/?${one.query}`;
      link.textContent = one.text;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "quiet";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove: ${one.text}`);
      remove.addEventListener("click", () => {
        save(load().filter((other) => other.query !== one.query));
        show();
        (place.querySelector("ul a") ?? document.getElementById("main")).focus();
      });
      const item = document.createElement("li");
      item.append(link, " ", remove);
      return item;
    }));
  };

  place.querySelector("[data-clear]").addEventListener("click", () => {
    save([]);
    show();
    document.getElementById("main").focus();
  });

  let timer = setTimeout(remember, STOOD_MS);
  document.addEventListener("htmx:pushedIntoHistory", () => {
    clearTimeout(timer);
    timer = setTimeout(remember, STOOD_MS);
    place.hidden = true;
  });
  addEventListener("pagehide", remember);
  addEventListener("pageshow", show); // of a page that the browser kept, too
  show();
}
