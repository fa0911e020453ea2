// A form made from a model's card: every column may be unknown, a value, a range or a set.

import { histogram } from "./charts.js";
import { h, name, newId, replace, segments } from "./elements.js";
import { evidenceText, figure, percent } from "./numbers.js";

const TIMES = { date: "date", datetime: "datetime-local", duration: "text" };
const DAY = 86_400_000_000; // microseconds
const CHIPS = 10; // categories beyond which there is a list with a filter
const SHOWN = 200; // categories of such a list that are shown at a time

/** A form over a card's columns. `onchange` is told after every change by the person. */
export class CaseForm {
  constructor(card, onchange) {
    this.fields = new Map(card.columns.map((column) => [column.name, makeField(column, onchange)]));
    this.element = h("div", { class: "fields" }, [...this.fields.values()].map((field) => field.element));
  }

  /** What is known: columns to values, ranges and sets. */
  get row() {
    const row = {};
    for (const [column, field] of this.fields) if (field.evidence !== null) row[column] = field.evidence;
    return row;
  }

  set row(row) {
    for (const [column, field] of this.fields) field.set(Object.hasOwn(row, column) ? row[column] : null);
  }

  focus(column) {
    const field = this.fields.get(column);
    field.element.scrollIntoView({ block: "center", behavior: "smooth" });
    field.focus();
  }
}

function makeField(column, onchange) {
  if (column.values) return new CategoryField(column, onchange);
  return column.kind in TIMES ? new TimeField(column, onchange) : new NumberField(column, onchange);
}

class Field {
  constructor(column, onchange) {
    this.column = column;
    this.onchange = onchange;
    this.evidence = null;
    this.unknownText = column.missing_is_value ? "missing" : "unknown";
    this.state = h("span", { class: "state" }, this.unknownText);
    this.clear = h("button", { type: "button", class: "clear", hidden: true, onclick: () => { this.set(null); this.onchange(); this.focus(); } },
      "clear", h("span", { class: "hidden" }, " ", name(column.name)));
    this.head = h("div", { class: "field-head" }, this.state, this.clear);
    this.element = h("fieldset", { class: "field unknown" },
      h("legend", null, name(column.name)), this.head);
  }

  changed(evidence) {
    this.evidence = evidence;
    this.show();
    this.onchange();
  }

  show() {
    const known = this.evidence !== null;
    this.element.classList.toggle("unknown", !known);
    this.clear.hidden = !known;
    replace(this.state, known ? name(evidenceText(this.evidence), 60) : this.unknownText);
  }
}

class CategoryField extends Field {
  constructor(column, onchange) {
    super(column, onchange);
    this.chosen = new Set(); // positions in column.values
    this.list = h("div", { class: column.values.length > CHIPS ? "chips list" : "chips" });
    this.element.append(this.list);
    if (column.values.length > CHIPS) {
      const id = newId("filter");
      this.filter = h("input", { id, type: "search", placeholder: `filter ${column.values.length} values`, "aria-label": `Filter the values of ${column.name}`.slice(0, 200), oninput: () => this.draw() });
      this.element.insertBefore(this.filter, this.list);
    }
    this.draw();
  }

  draw() {
    const wanted = (this.filter?.value ?? "").toLowerCase();
    const shown = this.column.values.map((_, i) => i).filter((i) => this.chosen.has(i) || String(this.column.values[i].label).toLowerCase().includes(wanted));
    const most = Math.max(...this.column.values.map((value) => value.share)) || 1;
    replace(this.list, shown.slice(0, SHOWN).map((i) => {
      const value = this.column.values[i];
      const chip = h("label", { class: "chip" },
        h("input", { type: "checkbox", checked: this.chosen.has(i), onchange: (event) => this.toggle(i, event.target.checked) }),
        h("span", { class: "chip-text" }, name(value.label, 48)), h("span", { class: "share" }, percent(value.share)));
      chip.style.setProperty("--share", `${Math.round((100 * value.share) / most)}%`);
      return chip;
    }), shown.length > SHOWN ? h("p", { class: "note" }, `and ${shown.length - SHOWN} more`) : null);
  }

  toggle(i, on) {
    if (on) this.chosen.add(i); else this.chosen.delete(i);
    const values = [...this.chosen].sort((a, b) => a - b).map((at) => this.column.values[at].value);
    this.changed(values.length === 0 ? null : values.length === 1 ? values[0] : { in: values });
  }

  set(evidence) {
    const wanted = evidence === null ? [] : typeof evidence === "object" ? evidence.in ?? [] : [evidence];
    this.chosen = new Set(wanted.map((value) => this.column.values.findIndex((one) => one.value === value || one.label === String(value))).filter((i) => i >= 0));
    this.evidence = evidence;
    this.draw();
    this.show();
  }

  focus() {
    this.element.querySelector("input[type=checkbox]")?.focus({ preventScroll: true });
  }
}

/** What numbers and times share: whether nothing, a value or a range is known. */
class OrderedField extends Field {
  constructor(column, onchange) {
    super(column, onchange);
    this.mode = "unknown";
    this.modes = segments(`What is known of ${column.name}`.slice(0, 200),
      [["unknown", this.unknownText], ["value", "value"], ["range", "range"]], this.mode, (mode) => this.choose(mode));
    this.head.replaceChildren(this.modes);
    this.head.classList.add("ordered");
    this.inputs = h("div", { class: "inputs" });
  }

  choose(mode) {
    this.mode = mode;
    if (mode === "unknown") this.changed(null);
    else this.changed(mode === "value" ? this.startValue() : { between: this.startRange() });
    this.drawInputs();
  }

  set(evidence) {
    this.evidence = evidence;
    this.mode = evidence === null ? "unknown" : typeof evidence === "object" ? "range" : "value";
    this.modes.querySelector(`input[value=${this.mode}]`).checked = true;
    this.show();
    this.drawInputs();
  }

  show() {
    const known = this.evidence !== null;
    this.element.classList.toggle("unknown", !known);
    this.element.dataset.mode = this.mode;
  }

  focus() {
    this.modes.querySelector("input:checked").focus({ preventScroll: true });
  }

  drawInputs() {
    const { mode, evidence } = this;
    const column = this.column.name.slice(0, 200);
    if (mode === "unknown") replace(this.inputs);
    else if (mode === "value") replace(this.inputs, this.input(`Value of ${column}`, evidence, (value) => this.changed(value)));
    else {
      const set = (at) => (value) => {
        const ends = [...this.evidence.between];
        ends[at] = value;
        this.changed({ between: ends });
      };
      replace(this.inputs, this.input(`${column} from`, evidence.between[0], set(0)), h("span", null, "to"), this.input(`${column} to`, evidence.between[1], set(1)));
    }
  }
}

class NumberField extends OrderedField {
  constructor(column, onchange) {
    super(column, onchange);
    const { edges } = column.histogram;
    this.low = Math.max(column.range[0], edges[0]);
    this.high = Math.min(column.range[1], edges.at(-1));
    if (!(this.high > this.low)) this.high = this.low + 1;
    const fine = 10 ** Math.floor(Math.log10((this.high - this.low) / 50));
    this.step = column.step ?? fine;
    this.picture = histogram(column, this.low, this.high);
    this.sliders = [0, 1].map((at) => h("input", {
      type: "range", min: this.low, max: this.high, step: column.step ?? "any", class: at ? "upper" : "lower",
      oninput: (event) => this.slide(at, Number(event.target.value)),
    }));
    this.element.append(
      h("div", { class: "slider" }, this.picture.svg, this.sliders),
      h("div", { class: "ends" }, h("span", { "aria-hidden": "true" }, figure(this.low)), this.inputs, h("span", { "aria-hidden": "true" }, figure(this.high))));
    this.drawInputs();
    this.show();
  }

  rounded(value) {
    const by = this.column.step ?? this.step;
    const base = this.column.step ? this.low : 0;
    return Number((base + Math.round((value - base) / by) * by).toPrecision(12));
  }

  startValue() {
    if (this.evidence !== null && typeof this.evidence === "object") return this.rounded((this.ends()[0] + this.ends()[1]) / 2);
    return this.rounded(Math.min(Math.max(this.column.mean, this.low), this.high));
  }

  startRange() {
    const middle = typeof this.evidence === "number" ? this.evidence : this.column.mean;
    const half = (this.high - this.low) / 8;
    return [Math.max(middle - half, this.low), Math.min(middle + half, this.high)].map((end) => this.rounded(end));
  }

  ends() {
    const [low, high] = this.evidence.between;
    return [low ?? this.low, high ?? this.high];
  }

  slide(at, given) {
    const value = this.column.step ? given : this.rounded(given);
    if (this.mode === "range") {
      const ends = this.ends();
      ends[at] = at === 0 ? Math.min(value, ends[1]) : Math.max(value, ends[0]);
      this.changed({ between: ends });
    } else {
      this.mode = "value";
      this.modes.querySelector("input[value=value]").checked = true;
      this.changed(value);
    }
    this.drawInputs();
  }

  show() {
    super.show();
    const column = this.column.name.slice(0, 200);
    const [first, second] = this.sliders;
    second.hidden = this.mode !== "range";
    if (this.mode === "range") {
      [first.value, second.value] = this.ends();
      this.picture.mark(...this.ends());
    } else {
      first.value = this.evidence ?? this.column.mean;
      this.picture.mark(this.evidence, this.evidence);
    }
    first.setAttribute("aria-label", this.mode === "range" ? `Lower end of ${column}` : column);
    second.setAttribute("aria-label", `Upper end of ${column}`);
    first.setAttribute("aria-valuetext", this.mode === "unknown" ? `${this.unknownText}; move to choose a value` : figure(Number(first.value)));
    second.setAttribute("aria-valuetext", figure(Number(second.value)));
  }

  input(label, value, set) {
    const change = (event) => {
      const text = event.target.value.trim();
      const number = Number(text);
      if (text === "" && !event.target.validity.badInput) set(null); // an emptied box: unknown
      else if (text !== "" && Number.isFinite(number)) set(number);
    };
    return h("input", { type: "number", step: "any", inputmode: "decimal", "aria-label": label, value: value ?? "", oninput: change });
  }
}

class TimeField extends OrderedField {
  constructor(column, onchange) {
    super(column, onchange);
    this.type = column.kind === "datetime" && column.step && column.step % DAY === 0 ? "date" : TIMES[column.kind];
    this.picture = histogram(column, column.histogram.edges[0], column.histogram.edges.at(-1));
    this.element.append(
      h("div", { class: "slider still" }, this.picture.svg),
      h("div", { class: "ends", "aria-hidden": "true" }, column.range_text.map((end) => h("span", null, this.type === "date" ? end.slice(0, 10) : end))), this.inputs);
    this.inputs.classList.add("times");
    this.drawInputs();
    this.show();
  }

  /** A time as the input takes it. */
  written(time) {
    if (this.type === "date") return time.slice(0, 10);
    if (this.type === "text") return time;
    return time.length > 10 ? time.slice(0, 16).replace(" ", "T") : `${time}T00:00`;
  }

  startValue() {
    const first = this.evidence?.between?.find((end) => end !== null);
    return this.written(first ?? this.column.range_text[0]);
  }

  startRange() {
    return this.column.range_text.map((end) => this.written(end));
  }

  input(label, value, set) {
    return h("input", { type: this.type, "aria-label": label, value: value ? this.written(String(value)) : "", onchange: (event) => set(event.target.value || null) });
  }
}
