// The model: its card, and its report.

import { problemBox, table } from "./answers.js";
import { h, name, replace, shorten } from "./elements.js";
import { figure } from "./numbers.js";
import { ask, modelPath } from "./requests.js";

export class ModelView {
  constructor(card) {
    this.card = card;
    this.status = h("div", { role: "status" });
    this.element = h("div", { class: "model" }, h("h1", null, name(card.name)), this.makeCard(), this.status);
    if (card.task === "density") replace(this.status, h("p", { class: "note" }, "A density predicts nothing: it has no groups of predictions, and no report."));
    else this.load();
  }

  close() {
    this.isClosed = true;
  }

  makeCard() {
    const { card } = this;
    const facts = [
      ["kind", card.kind], ["density", card.density], ["predicts", card.target], ["classes", card.classes?.join(", ")],
      ["training rows", card.training_rows === null ? null : figure(card.training_rows)], ["columns", figure(card.columns.length)],
      ["version of the file", card.version],
    ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    return h("div", { class: "card" },
      h("dl", { class: "facts" }, facts.map(([term, value]) => h("div", null, h("dt", null, term), h("dd", null, name(value, 200))))),
      card.problem ? h("p", { class: "problem" }, name(card.problem, 600)) : null,
      h("p", { class: "note" }, card.exactness),
      h("details", { open: card.task === "density" }, h("summary", null, `The ${card.columns.length} columns`), table("Columns", [
        ["column", card.columns.map((column) => column.name)],
        ["kind", card.columns.map((column) => column.kind)],
        ["values", card.columns.map(valuesText)],
      ])));
  }

  async load() {
    replace(this.status, h("p", { class: "loading" }, "The report is being made; the first time takes some seconds."));
    try {
      const text = await ask(modelPath(this.card.name, "report"));
      if (!this.isClosed) this.show(text);
    } catch (error) {
      replace(this.status, problemBox(error));
    }
  }

  /**
   * The report is a page of its own; here it stands within this one, under its own style sheet and
   * in this page's theme. Its script is left out, and this page's policy runs none.
   */
  show(text) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(/<style>([^]*?)<\/style>/.exec(text)?.[1] ?? "");
    const page = new DOMParser().parseFromString(text.replace(/<style>[^]*?<\/style>/, ""), "text/html");
    for (const element of page.querySelectorAll("script, .skip, #theme")) element.remove();
    for (const element of page.querySelectorAll("main")) element.replaceWith(...element.childNodes);
    const place = h("div", { class: "report-place" });
    const root = place.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    root.append(...page.body.childNodes);
    root.addEventListener("click", (event) => {
      const link = event.target.closest?.("a[href^='#']");
      if (!link) return;
      event.preventDefault(); // the address holds the view
      root.getElementById(link.getAttribute("href").slice(1))?.scrollIntoView({ behavior: "smooth" });
    });
    const { problem } = this.card;
    replace(this.element, problem ? h("p", { class: "problem" }, name(problem, 600)) : null, place);
  }
}

function valuesText(column) {
  if (!column.values) return (column.range_text ?? column.range.map((end) => figure(end))).join(" to ");
  const labels = column.values.slice(0, 8).map((value) => shorten(String(value.label), 60));
  return labels.join(", ") + (column.values.length > 8 ? ", …" : "");
}
