// A new dataset's form: the fields of the chosen method alone are sent, and shown.
"use strict";

const methods = document.getElementById("methods");

function choose() {
  const chosen = methods.querySelector("input[name=method]:checked").value;
  for (const fields of methods.querySelectorAll(".method")) {
    fields.disabled = fields.hidden = fields.dataset.method !== chosen;
  }
}

methods.addEventListener("change", choose);
window.addEventListener("pageshow", choose); // the browser restores what was chosen
choose();
