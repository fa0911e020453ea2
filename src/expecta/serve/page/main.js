// Start the page: which model, which view, which theme. The address holds all of it.

import { problemBox } from "./answers.js";
import { CaseView } from "./case_view.js";
import { DensityView } from "./density_view.js";
import { h, name, replace } from "./elements.js";
import { GroupsView } from "./groups_view.js";
import { ModelView } from "./model_view.js";
import { ask, modelPath, onToken } from "./requests.js";

const VIEWS = { case: CaseView, groups: GroupsView, model: ModelView };
const main = document.getElementById("main");
const select = document.getElementById("model");
const cards = new Map();
let models = [];
let shown = null; // the view
let again; // a timer, to show it anew
const SETTLE = 1500; // milliseconds

/** What the address says: view, model, and the view's state. */
function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, model] = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return ""; }
  });
  let state = {};
  try {
    const found = JSON.parse(new URLSearchParams(query).get("state") ?? "{}");
    if (found !== null && typeof found === "object") state = found;
  } catch { /* an address that was cut: the view without its state */ }
  return { view: Object.hasOwn(VIEWS, view) ? view : "case", model: models.find((one) => one.name === model)?.name ?? models[0]?.name, state };
}

function hash(view, model, state) {
  const query = state && Object.keys(state).length ? `?${new URLSearchParams({ state: JSON.stringify(state) })}` : "";
  return `#/${view}/${encodeURIComponent(model)}${query}`;
}

async function card(model) {
  if (!cards.has(model)) cards.set(model, await ask(modelPath(model)));
  return cards.get(model);
}

async function show() {
  clearTimeout(again);
  const { view, model, state } = address();
  if (model === undefined) return;
  select.value = model;
  for (const link of document.querySelectorAll("nav a")) {
    link.href = hash(link.dataset.view, model);
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  let about;
  try {
    about = await card(model);
  } catch (error) {
    replace(main, problemBox(error), h("button", { type: "button", onclick: show }, "Try again"));
    if (error.status === 503) again = setTimeout(show, SETTLE); // not ready yet
    return;
  }
  document.title = `${name(about.target ?? about.name, 60).textContent} · Expecta`;
  shown?.close();
  const remember = (next) => history.replaceState(null, "", hash(view, model, next));
  const views = about.task === "density" ? { case: DensityView, groups: ModelView, model: ModelView } : VIEWS;
  const replaced = () => { // the service has read another file: show it once it has settled
    cards.delete(model);
    clearTimeout(again);
    again = setTimeout(show, SETTLE);
  };
  shown = new views[view](about, state, remember, replaced);
  replace(main, shown.element);
}

function makeTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  const kept = localStorage.getItem("expecta-theme");
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("expecta-theme", root.dataset.theme);
    show();
  });
  dark.addEventListener("change", show);
  show();
}

/** A service that wants a token: ask the person for it. */
function askForToken(wasWrong) {
  return new Promise((resolve) => {
    const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
    replace(main, h("form", { class: "card token", onsubmit: (event) => {
      event.preventDefault();
      replace(main, h("p", { class: "loading" }, "Loading…"));
      resolve(input.value);
    } }, h("h1", null, "This service asks for a token"),
    wasWrong ? h("p", { class: "problem", role: "alert" }, "That was not the token.") : null,
    h("label", { for: "token" }, "Token"), input, h("button", null, "Go on")));
    input.focus();
  });
}

async function start() {
  makeTheme();
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the view
    main.focus();
  });
  onToken(askForToken);
  try {
    const answer = await ask("/models");
    models = answer.models;
    document.getElementById("version").textContent = `Expecta ${answer.expecta_version}.`;
  } catch (error) {
    replace(main, problemBox(error));
    return;
  }
  if (models.length === 0) {
    replace(main, h("p", null, "The service has no models."));
    return;
  }
  replace(select, models.map((one) => h("option", { value: one.name }, name(one.name, 60).textContent)));
  select.closest("label").hidden = models.length < 2;
  select.addEventListener("change", () => { location.hash = hash(address().view, select.value); });
  window.addEventListener("hashchange", show);
  await show();
}

start();
