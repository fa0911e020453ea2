// The model: its card, and its report.

import { problemBox, table } from "./answers.js";
import { h, name, replace } from "./elements.js";
import { figure } from "./numbers.js";
import { ask, modelPath } from "./requests.js";

export class ModelView {
  constructor(card) {
    this.card = card;
    this.report = h("div", { class: "report" });
    this.element = h("div", { class: "model" }, h("h1", null, name(card.name)), this.makeCard(), this.report);
    if (card.task === "density") replace(this.report, h("p", { class: "note" }, "A density predicts nothing, and has no report."));
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
        ["values", card.columns.map((column) => column.values ? column.values.slice(0, 8).map((value) => value.label).join(", ") + (column.values.length > 8 ? ", …" : "") : (column.range_text ?? column.range.map((end) => figure(end))).join(" to "))],
      ])));
  }

  async load() {
    replace(this.report, h("p", { class: "loading", role: "status" }, "The report is being made; the first time takes some seconds."));
    let text;
    try {
      text = await ask(modelPath(this.card.name, "report"));
    } catch (error) {
      replace(this.report, problemBox(error));
      return;
    }
    if (this.isClosed) return;
    this.show(text);
  }

  /**
   * The report is a page of its own; here it stands within this one, under its own style sheet and
   * in this page's theme. Its script is left out, and this page's policy runs none.
   */
  show(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync([...page.querySelectorAll("style")].map((style) => style.textContent).join("\n"));
    for (const element of page.querySelectorAll("script, style, .skip, #theme")) element.remove();
    const place = h("div", { class: "report-place" });
    const root = place.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    root.append(...page.body.childNodes);
    root.addEventListener("click", (event) => {
      const target = event.target.closest?.("a[href^='#']");
      if (!target) return;
      event.preventDefault();
      root.getElementById(target.getAttribute("href").slice(1))?.scrollIntoView({ behavior: "smooth" });
    });
    replace(this.report, place);
  }
}
