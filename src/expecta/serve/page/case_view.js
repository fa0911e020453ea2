// One case: what is known of it, and at every change what the model makes of it.

import { bars, contributionBars, copyButton, problemBox, table, trust } from "./answers.js";
import { CasePicture, hull, steps } from "./charts.js";
import { h, name, newId, replace, segments } from "./elements.js";
import { CaseForm } from "./form.js";
import { change, evidenceText, figure, output, percent, ticks } from "./numbers.js";
import { ask, modelPath, Newest } from "./requests.js";
import { asCurl, asJson, asPython } from "./snippets.js";

const COVERAGES = [0.5, 0.8, 0.9, 0.95];

/** The steps of a curve between two ends. */
function within(cells, [low, high]) {
  return cells.map(([left, right, height]) => [Math.max(left, low), Math.min(right, high), height]).filter(([left, right]) => right > left);
}

export class CaseView {
  constructor(card, state, remember, replaced) {
    Object.assign(this, { card, remember, replaced });
    this.isProbability = card.task === "classification";
    this.hasTarget = card.task === "regression" && card.intervals;
    const outputs = card.outputs.map((one) => one.of);
    this.of = outputs.includes(state.of) ? state.of : outputs.at(-1) ?? null;
    this.threshold = typeof state.threshold === "number" ? state.threshold : null;
    this.coverage = COVERAGES.includes(state.coverage) ? state.coverage : 0.9;
    this.form = new CaseForm(card, () => this.changed());
    this.form.row = state.row && typeof state.row === "object" ? state.row : {};
    this.makeQueues();
    this.element = h("div", { class: "case" }, this.makeForm(), this.makeAnswer(), this.makeBar());
    this.changed(true);
  }

  // -- questions ----------------------------------------------------------------------------

  /** The number first, which is quick; then its distribution; then what explains it. */
  makeQueues() {
    const path = modelPath(this.card.name, "case");
    const later = (parts) => (request, signal) => ask(path, { ...request, parts }, signal);
    const fail = (error) => this.showProblem(error);
    this.first = new Newest((request, signal) => this.askFirst(request, signal), (answer, request) => {
      this.showFirst(answer, request);
      this.second.ask(request);
    }, fail);
    this.second = new Newest(later(["distribution", "interval", "threshold"]), (answer, request) => {
      this.showSecond(answer, request);
      if (request === this.latest) this.third.ask(request);
    }, fail);
    this.third = new Newest(later(["next", "contributions"]), (answer, request) => {
      if (request === this.latest) this.showThird(answer, request);
    }, fail);
  }

  async askFirst(request, signal) {
    const soft = Object.values(request.row).some((value) => typeof value === "object");
    const wanted = this.isProbability ? { proba: true } : { std: true, interval: this.hasTarget && !soft ? request.coverage : undefined };
    const answer = await ask(modelPath(this.card.name, "predict"), { rows: request.row, ...wanted }, signal);
    return { ...answer.predictions[0], remarks: answer.remarks };
  }

  get request() {
    const request = { row: this.form.row };
    if (this.of !== null) request.of = this.of;
    if (this.threshold !== null) request.threshold = this.threshold;
    if (this.hasTarget) request.coverage = this.coverage;
    return request;
  }

  changed(isFirst = false) {
    const { request } = this;
    this.element.setAttribute("aria-busy", "true");
    if (!isFirst) this.remember(request);
    this.latest = request;
    this.first.ask(request);
  }

  close() {
    for (const queue of [this.first, this.second, this.third]) queue.cancel();
    this.picture?.watch.disconnect();
  }

  // -- parts of the view --------------------------------------------------------------------

  makeForm() {
    return h("section", { class: "known-part", "aria-labelledby": "known-title" },
      h("div", { class: "part-head" }, h("h1", { id: "known-title" }, "What is known"),
        h("button", { type: "button", class: "quiet", onclick: () => { this.form.row = {}; this.changed(); } }, "Forget all")),
      h("p", { class: "note" }, "Leave open what you do not know. Several choices are a set. Grey bars show the population under the learned density."),
      this.form.element);
  }

  makeAnswer() {
    this.headline = h("p", { class: "headline", role: "status", "aria-live": "polite", "aria-atomic": "true" }, "…");
    this.spread = h("p", { class: "under" });
    this.trust = h("div", { class: "trust-place" });
    this.pictureElement = h("div", { class: "picture" });
    this.targetLine = h("p", { class: "target-line" });
    this.numbers = h("details", { class: "numbers" }, h("summary", null, "The distribution in numbers"));
    this.problem = h("div", { class: "problem-place" });
    this.decision = h("p", { class: "decision", "aria-live": "polite" });
    this.next = h("div");
    this.contributions = h("div");
    this.why = h("p", { class: "why" });
    const target = name(this.outputName(), 60);
    return h("section", { class: "answer-part", "aria-labelledby": "answer-title" },
      h("div", { class: "card hero" },
        h("div", { class: "part-head" }, h("h2", { id: "answer-title" }, this.isProbability ? "Expected probability" : "Expected ", this.isProbability ? null : target), this.makeOutputs()),
        this.headline, this.spread, this.problem, this.trust),
      h("div", { class: "card" }, h("h2", null, "Distribution"),
        this.pictureElement, this.targetLine, this.numbers),
      this.makeDecision(),
      h("div", { class: "two" },
        h("div", { class: "card" }, h("h2", null, "What to ask next"), this.next),
        h("div", { class: "card" }, h("h2", null, "Why?"), this.why, this.contributions)),
      this.makeShare());
  }

  outputName() {
    return this.card.target ?? this.card.outputs.find((one) => one.of === this.of)?.name ?? "output";
  }

  makeOutputs() {
    const outputs = this.card.outputs;
    if (outputs.length < 2) return null;
    const id = newId("of");
    return h("label", { class: "of", for: id }, this.isProbability ? ["of ", name(this.card.target ?? "class", 30), " = "] : "output ",
      h("select", { id, onchange: (event) => { this.of = outputs[event.target.selectedIndex].of; this.changed(); } },
        outputs.map((one) => h("option", { selected: one.of === this.of }, name(one.of, 60).textContent))));
  }

  makeDecision() {
    const id = newId("threshold");
    const everyone = this.everyone();
    const ends = everyone ? hull(everyone.curve.x, this.isProbability) : [0, 1];
    const round = ticks(...ends, 200);
    const step = round.length > 1 ? Number((round[1] - round[0]).toPrecision(6)) : "any";
    const set = (value, from) => {
      this.threshold = value;
      if (from !== this.thresholdInput) this.thresholdInput.value = value ?? "";
      if (from !== this.thresholdSlider) this.thresholdSlider.value = value ?? everyone?.mean ?? 0;
      this.thresholdSlider.classList.toggle("unset", value === null);
      this.changed();
    };
    this.thresholdInput = h("input", { id, type: "number", step: "any", inputmode: "decimal", placeholder: "none", value: this.threshold ?? "",
      oninput: (event) => { const text = event.target.value.trim(); set(text === "" ? null : Number(text), this.thresholdInput); } });
    this.thresholdSlider = h("input", { type: "range", class: this.threshold === null ? "threshold-slider unset" : "threshold-slider", "aria-label": "Threshold", min: ends[0], max: ends[1], step,
      value: this.threshold ?? everyone?.mean ?? 0, oninput: (event) => set(Number(event.target.value), this.thresholdSlider) });
    this.thresholdSlider.value = this.threshold ?? everyone?.mean ?? 0;
    return h("div", { class: "card" }, h("h2", null, "A decision"),
      h("div", { class: "threshold-row" }, h("label", { for: id }, "Yes, if the output is at least"), this.thresholdInput, this.thresholdSlider), this.decision);
  }

  makeShare() {
    const kinds = { json: () => asJson(this.request), curl: () => asCurl(this.card.name, this.request), python: () => asPython(this.card, this.request) };
    this.kind = "json";
    this.snippet = h("pre", { class: "snippet", tabindex: "0", "aria-label": "This case as a request" });
    this.showSnippet = () => { this.snippet.textContent = kinds[this.kind](); };
    return h("div", { class: "card share" }, h("h2", null, "Take it elsewhere"),
      h("div", { class: "row" }, segments("Form", [["json", "JSON"], ["curl", "curl"], ["python", "Python"]], "json", (kind) => { this.kind = kind; this.showSnippet(); }),
        copyButton("Copy", () => kinds[this.kind]()), copyButton("Copy link to this case", () => location.href)),
      this.snippet);
  }

  /** On narrow screens, the number that stays in sight. */
  makeBar() {
    this.bar = h("a", { class: "answer-bar", href: "#answer-title", "aria-hidden": "true", tabindex: "-1", onclick: (event) => {
      event.preventDefault();
      document.getElementById("answer-title").scrollIntoView({ behavior: "smooth" });
    } }, h("span", null, "Expected"), h("strong", null, "…"));
    return this.bar;
  }

  everyone() {
    return this.card.outputs.find((one) => one.of === this.of);
  }

  // -- answers ------------------------------------------------------------------------------

  showProblem(error) {
    this.element.setAttribute("aria-busy", "false");
    this.element.classList.add("failed"); // what is shown answers an older question
    replace(this.headline, "—");
    replace(this.bar.lastChild, "—");
    replace(this.spread);
    replace(this.trust);
    replace(this.problem, problemBox(error));
    this.showSnippet();
  }

  value(answer) {
    if (!this.isProbability) return answer.prediction;
    const { of } = this; // the keys are the library's texts of the classes
    const key = [String(of), `${of}.0`, of === true ? "True" : "False"].find((text) => Object.hasOwn(answer.proba, text));
    return answer.proba[key] ?? null;
  }

  showFirst(answer, request) {
    this.element.classList.remove("failed");
    const value = this.value(answer);
    const impossible = answer.error === null;
    replace(this.problem, impossible ? h("div", { class: "problem", role: "alert" }, "What is known has probability zero under the learned density: there is no answer.") : null);
    const text = Array.isArray(value) ? value.map((one) => figure(one)).join(", ") : output(value, this.isProbability);
    replace(this.headline, text);
    if (this.isProbability) replace(this.spread, impossible ? "" : ["Most probable: ", name(answer.prediction)]);
    else if (answer.std === 0) replace(this.spread, "no spread: the model’s output is settled");
    else replace(this.spread, typeof answer.std === "number" ? ["± ", figure(answer.std), " spread of the model’s output over the unknown inputs"] : "");
    replace(this.bar, h("span", null, "Expected ", name(this.isProbability ? `${this.card.target ?? ""} = ${this.of}` : this.outputName(), 24)), h("strong", null, text));
    if (answer.interval) this.showTarget({ low: answer.interval[0], high: answer.interval[1], coverage: request.coverage });
    this.showSnippet();
  }

  showTarget(interval) {
    if (!this.hasTarget) return;
    if (!interval) {
      replace(this.targetLine);
      return;
    }
    const id = newId("coverage");
    replace(this.targetLine,
      h("strong", null, name(this.outputName(), 40), " itself: "),
      h("label", { for: id, class: "hidden" }, "Coverage of the interval"),
      h("select", { id, onchange: (event) => { this.coverage = Number(event.target.value); this.changed(); } },
        COVERAGES.map((one) => h("option", { value: one, selected: one === this.coverage }, `${100 * one}%`))),
      ` of such cases between ${figure(interval.low)} and ${figure(interval.high)}`,
      h("span", { class: "note" }, " — calibrated on held-out rows; this is the uncertainty of the outcome, not the spread above."));
  }

  showSecond(answer, request) {
    if (answer.version !== this.card.version) this.replaced();
    const group = answer.distribution;
    const everyone = this.everyone();
    const { interval } = answer;
    this.showTarget(interval);
    if (!this.picture) this.picture = new CasePicture(this.pictureElement, this.hasTarget);
    const cells = group?.curve.x.length ? steps(group.curve) : [];
    const targetCells = interval ? steps(interval.curve) : [];
    const ends = hull([...(everyone?.curve.x ?? []), ...Object.values(group?.quantiles ?? {}), interval?.low, interval?.high], this.isProbability);
    this.picture.show({
      text: this.pictureText(answer, request), ends, isProbability: this.isProbability,
      everyone: everyone?.curve.x.length ? steps(everyone.curve) : [], cells, targetCells: within(targetCells, ends),
      mean: group?.mean ?? null, threshold: request.threshold, interval: interval ? [interval.low, interval.high] : null,
      targetText: `${this.outputName()} itself${interval ? `, ${100 * interval.coverage}% interval` : ": intervals need single values"}`,
    });
    if (group) {
      if (this.isProbability && group.std > 0) {
        replace(this.spread, `± ${output(group.std, true)} spread of the model’s output over the unknown inputs. Most probable: `, name(answer.prediction));
      }
      const complete = this.card.columns.every((column) => ["string", "number", "boolean"].includes(typeof request.row[column.name]));
      replace(this.trust, trust({ ...group, numerical_error: answer.error, remarks: answer.remarks }, this.card.target, complete));
      const levels = Object.keys(group.quantiles);
      replace(this.numbers, h("summary", null, "The distribution in numbers"), table("Quantiles of the model's output over the unknown inputs", [
        ["share of cases at or below", levels.map((level) => `${Math.round(1000 * level) / 10}%`)],
        ["model’s output", levels.map((level) => group.quantiles[level]), (value) => output(value, this.isProbability)],
        ["within", levels.map((level) => group.quantile_errors[level]), (value) => (value === 0 ? "exact" : `± ${output(value, this.isProbability)}`)],
      ]));
    }
    this.showDecision(answer, request);
  }

  pictureText(answer, request) {
    const group = answer.distribution;
    if (!group || group.mean === null) return "No distribution";
    const say = (value) => output(value, this.isProbability);
    const levels = Object.keys(group.quantiles);
    let text = `Distribution of the model's output: expected ${say(group.mean)}, 90% of it between ${say(group.quantiles[levels[0]])} and ${say(group.quantiles[levels.at(-1)])}.`;
    if (answer.interval) text += ` Interval of the outcome: ${figure(answer.interval.low)} to ${figure(answer.interval.high)}.`;
    if (typeof request.threshold === "number") text += ` Threshold at ${say(request.threshold)}.`;
    return text;
  }

  showDecision(answer, request) {
    const { threshold } = answer;
    if (!threshold || threshold.decision === null) {
      replace(this.decision, h("span", { class: "note" }, "Set a threshold to see how likely the decision stands once everything is known."));
      return;
    }
    const yes = threshold.decision;
    const above = answer.interval?.above_threshold;
    replace(this.decision,
      h("span", { class: yes ? "verdict yes" : "verdict no" }, yes ? "Yes" : "No"), " It stands with probability ",
      h("strong", null, percent(threshold.probability)), threshold.error > 0 ? ` (± ${percent(threshold.error)})` : "", " once every input is known.",
      typeof above === "number" ? h("span", { class: "note" }, " ", name(this.outputName(), 40), ` itself is at least ${figure(request.threshold)} with probability ${percent(above)} (calibrated).`) : null);
  }

  showThird(answer, request) {
    this.element.setAttribute("aria-busy", "false");
    const asked = answer.next;
    const found = asked?.columns.length ? asked : null;
    replace(this.next, found ? [
      h("p", { class: "note" }, "Share of the spread (variance of the model’s output) that knowing a column would settle."),
      bars(asked.columns.map((column, i) => ({
        label: h("button", { type: "button", class: "link", onclick: () => this.form.focus(column) }, name(column, 30)),
        text: percent(asked.share[i]), to: Math.min(asked.share[i] || 0, 1), kind: "next",
        title: `remaining spread ${figure(asked.remaining[i])}`,
      })).slice(0, 12), "Columns to ask for, the most telling first"),
    ] : h("p", { class: "note" }, asked ? "Everything is known." : "No answer."));
    this.showWhy(answer, request);
  }

  showWhy(answer, request) {
    const { contributions } = answer;
    if (!contributions) {
      replace(this.why, h("span", { class: "note" }, answer.prediction === null ? "No answer." : "Contributions are those of single values: choose a value where there is a range or a set."));
      replace(this.contributions);
      return;
    }
    const is = this.isProbability;
    const known = contributions.columns.map((column, i) => ({ column, value: contributions.values[0][i], text: evidenceText(request.row[column]) }))
      .filter((one) => one.value !== null && one.value !== 0).sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 3);
    const reasons = known.flatMap((one, i) => [
      i === 0 ? "" : i === known.length - 1 ? " and " : ", ",
      name(one.column, 30), " is ", name(one.text, 30), ` (${change(one.value, is)})`]);
    const [best] = answer.next?.columns ?? [];
    replace(this.why, known.length
      ? ["The model expects ", h("strong", null, output(contributions.prediction[0], is)), ` rather than ${output(contributions.base, is)}, mainly because `, reasons, "."]
      : `Nothing is known: the model expects what it expects of everyone, ${output(contributions.base, is)}.`,
    best && answer.next.share[0] > 0.005 ? [" Of what is unknown, ", name(best, 30), " matters most."] : "");
    replace(this.contributions, known.length ? contributionBars(contributions, is, request.row) : null);
  }
}
