// One case of a density, which predicts nothing: how likely it is, and what is unusual about it.

import { bars, problemBox } from "./answers.js";
import { h, name, replace } from "./elements.js";
import { CaseForm } from "./form.js";
import { figure, percent } from "./numbers.js";
import { ask, modelPath, Newest } from "./requests.js";

export class DensityView {
  constructor(card, state, remember) {
    this.form = new CaseForm(card, () => this.changed());
    this.form.row = state.row && typeof state.row === "object" ? state.row : {};
    this.remember = remember;
    this.queue = new Newest((request, signal) => ask(modelPath(card.name, "outliers"), { rows: request.row }, signal),
      (answer, request) => request === this.latest && this.show(answer), (error) => this.fail(error));
    this.answer = h("div", { class: "card hero" });
    this.element = h("div", { class: "case" },
      h("section", { class: "known-part", "aria-labelledby": "known-title" },
        h("div", { class: "part-head" }, h("h1", { id: "known-title" }, "What is known"),
          h("button", { type: "button", class: "quiet", onclick: () => { this.form.row = {}; this.changed(); } }, "Forget all")),
        h("p", { class: "note" }, "A density predicts nothing: it tells how likely a case is. Grey bars show the population."),
        this.form.element),
      h("section", { class: "answer-part", "aria-live": "polite" }, this.answer));
    this.changed(true);
  }

  changed(isFirst = false) {
    this.latest = { row: this.form.row };
    this.element.setAttribute("aria-busy", "true");
    if (!isFirst) this.remember(this.latest);
    this.queue.ask(this.latest);
  }

  close() {
    this.queue.cancel();
  }

  fail(error) {
    this.element.setAttribute("aria-busy", "false");
    replace(this.answer, problemBox(error));
  }

  show(answer) {
    this.element.setAttribute("aria-busy", "false");
    const known = answer.columns.map((column, i) => ({ column, tail: answer.tail[0][i], text: answer.known[0][i] })).filter((one) => one.tail !== null);
    const strange = answer.columns.map((column, i) => ({ column, text: answer.known[0][i], unlike: answer.unfamiliar[0][i] })).filter((one) => one.unlike);
    known.sort((a, b) => a.tail - b.tail);
    replace(this.answer, h("h2", null, "How unusual"),
      known.length === 0 ? h("p", { class: "headline" }, "—") : h("p", { class: "headline" }, percent(answer.surprise[0])),
      known.length === 0 ? h("p", { class: "under" }, "Nothing is known yet.") : [
        h("p", { class: "under" }, `of random rows known in the same columns are at most as likely (± ${percent(answer.error[0])}, from ${figure(answer.samples)} samples). Log-probability ${figure(answer.log_prob[0])} nats, exact.`),
        strange.length ? h("p", { class: "note" }, "Take care: no such value in the training data: ", strange.flatMap((one, i) => [i ? ", " : "", name(one.column, 30), " ", name(one.text, 30)]), ". Numbers count as the nearest bin, categories as unknown, so the share above does not tell.") : null,
        h("p", { class: "note" }, "Of each column: how much of the population, alike in the others, has a value that is at most as likely."),
        bars(known.map(({ column, tail, text }) => ({ label: [name(column, 30), " ", h("span", { class: "known" }, name(text, 30))], text: percent(tail), to: Math.min(tail, 1) })), "The most surprising column first"),
      ]);
  }
}
