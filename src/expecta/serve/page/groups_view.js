// Groups: ask about one, compare two, or divide a population by columns.

import { csvText, downloadButton, numericalError, problemBox, table, trust } from "./answers.js";
import { GroupPicture, hull, splitPictures, steps, svgText } from "./charts.js";
import { h, name, newId, replace, segments } from "./elements.js";
import { CaseForm } from "./form.js";
import { errorText, figure, output, percent } from "./numbers.js";
import { ask, modelPath, Newest } from "./requests.js";

const MODES = [["ask", "Ask"], ["compare", "Compare"], ["split", "Split"]];
const WAIT = 350; // milliseconds after the last letter of a question

/** A group, as a text or clicked together; the service writes the text of what was clicked. */
class GroupEditor {
  constructor(card, label, kind, given, onchange) {
    this.given = given ?? null; // a text, an object from columns to evidence, or null for everyone
    const id = newId("group");
    this.text = h("textarea", { id, rows: 2, spellcheck: "false", autocapitalize: "off", placeholder: example(card), value: typeof given === "string" ? given : "",
      oninput: () => {
        this.given = this.text.value.trim() || null;
        this.form.row = {};
        clearTimeout(this.timer);
        this.timer = setTimeout(onchange, WAIT);
      } });
    this.form = new CaseForm(card, () => {
      const { row } = this.form;
      this.given = Object.keys(row).length ? row : null;
      if (this.given === null) this.text.value = "";
      onchange();
    });
    if (this.given !== null && typeof this.given === "object") this.form.row = this.given;
    this.element = h("div", { class: `group-editor ${kind}` },
      h("label", { for: id }, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), label), this.text,
      h("details", null, h("summary", null, "Click it together"), this.form.element));
  }

  /** Write what was clicked as the service says it. */
  written(query) {
    if (this.given !== null && typeof this.given === "object") this.text.value = query;
  }
}

/** A question that a model could be asked. */
function example(card) {
  const parts = [];
  const category = card.columns.find((column) => column.values && column.values.length > 1 && /^[A-Za-z_]\w*$/.test(column.name));
  const number = card.columns.find((column) => !column.values && /^[A-Za-z_]\w*$/.test(column.name) && ["integer", "number"].includes(column.kind));
  if (number) parts.push(`${number.name} >= ${figure(number.mean).replace(",", "").replace("−", "-")}`);
  if (category && /^[\w ]{1,30}$/.test(category.values[0].label)) {
    const { value } = category.values[0];
    parts.push(`${category.name} == ${typeof value === "string" ? `'${value}'` : typeof value === "boolean" ? (value ? "True" : "False") : value}`);
  }
  return parts.length ? `everyone, or for example: ${parts.join(" and ")}` : "everyone";
}

export class GroupsView {
  constructor(card, state, remember) {
    this.card = card;
    this.remember = remember;
    const outputs = card.outputs.map((one) => one.of);
    this.of = outputs.includes(state.of) ? state.of : outputs.at(-1) ?? null;
    this.mode = MODES.some(([mode]) => mode === state.mode) ? state.mode : "ask";
    const names = card.columns.map((column) => column.name);
    this.by = Array.isArray(state.by) ? state.by.filter((one) => names.includes(one)) : [];
    if (this.by.length === 0) this.by = [(card.columns.find((column) => column.values) ?? card.columns[0]).name];
    this.bins = Number.isInteger(state.bins) ? state.bins : 4;
    const editor = (label, kind, given) => new GroupEditor(card, label, kind, valid(given), () => this.changed());
    this.a = editor("Group", "a", state.a);
    this.b = editor("Compared with", "b", state.b);
    this.queue = new Newest((request, signal) => ask(modelPath(card.name, request.path), request.body, signal),
      (answer, request) => this.show(answer, request), (error) => this.fail(error));
    this.controls = h("div", { class: "card controls" });
    this.result = h("section", { class: "group-answer", "aria-live": "polite", "aria-label": "Answer" });
    this.element = h("div", { class: "groups" },
      h("div", { class: "part-head" }, h("h1", null, "Groups"), segments("Question", MODES, this.mode, (mode) => { this.mode = mode; this.drawControls(); this.changed(); }), this.makeOutputs()),
      this.controls, this.result);
    this.drawControls();
    this.changed(true);
  }

  close() {
    this.queue.cancel();
    this.picture?.watch.disconnect();
  }

  makeOutputs() {
    const outputs = this.card.outputs;
    if (outputs.length < 2) return null;
    const id = newId("of");
    return h("label", { class: "of", for: id }, this.card.task === "classification" ? ["probability of ", name(this.card.target ?? "class", 30), " = "] : "output ",
      h("select", { id, onchange: (event) => { this.of = outputs[event.target.selectedIndex].of; this.changed(); } },
        outputs.map((one) => h("option", { selected: one.of === this.of }, name(one.of, 60).textContent))));
  }

  drawControls() {
    this.controls.className = `card controls ${this.mode}`;
    this.a.element.querySelector("label").lastChild.textContent = { ask: "Group", compare: "Group A", split: "Within" }[this.mode];
    replace(this.controls, this.mode === "split" ? this.makeSplit() : null, this.a.element, this.mode === "compare" ? this.b.element : null);
  }

  makeSplit() {
    const toggle = (column, on) => {
      this.by = on ? [...this.by, column] : this.by.filter((one) => one !== column);
      this.drawControls();
      this.changed();
      [...this.controls.querySelectorAll(".chips input")].at(this.card.columns.findIndex((one) => one.name === column))?.focus();
    };
    const bins = newId("bins");
    return h("div", { class: "split-by" },
      h("fieldset", null, h("legend", null, "Split by"), h("div", { class: "chips" }, this.card.columns.map((column) => h("label", { class: "chip plain" },
        h("input", { type: "checkbox", checked: this.by.includes(column.name), disabled: this.by.length >= 3 && !this.by.includes(column.name), onchange: (event) => toggle(column.name, event.target.checked) }),
        h("span", { class: "chip-text" }, name(column.name, 40)), this.by.includes(column.name) && this.by.length > 1 ? h("span", { class: "share" }, this.by.indexOf(column.name) + 1) : null)))),
      h("label", { for: bins }, "Groups that numbers are cut into ", h("input", { id: bins, type: "number", min: 1, max: 50, value: this.bins, oninput: (event) => {
        const value = Number(event.target.value);
        if (Number.isInteger(value) && value >= 1 && value <= 50) { this.bins = value; this.changed(); }
      } })));
  }

  get state() {
    return { mode: this.mode, a: this.a.given, b: this.b.given, by: this.by, bins: this.bins, of: this.of };
  }

  changed(isFirst = false) {
    if (!isFirst) this.remember(this.state);
    if (this.mode === "split" && this.by.length === 0) {
      replace(this.result, h("p", { class: "note" }, "Choose one column, or up to three."));
      return;
    }
    this.element.setAttribute("aria-busy", "true");
    const { of } = this;
    const body = {
      ask: { query: this.a.given, of, curve: true },
      compare: { a: this.a.given, b: this.b.given, of, curve: true },
      split: { columns: this.by, given: this.a.given, bins: this.bins, of },
    }[this.mode];
    this.latest = { path: this.mode, body };
    this.queue.ask(this.latest);
  }

  fail(error) {
    this.element.setAttribute("aria-busy", "false");
    this.picture = undefined;
    replace(this.result, problemBox(error));
  }

  show(answer, request) {
    if (request !== this.latest) return; // a newer one is under way
    this.element.setAttribute("aria-busy", "false");
    if (request.path === "split") this.showSplit(answer);
    else this.showGroups(request.path === "ask" ? [answer] : [answer.a, answer.b], answer);
  }

  // -- one group, or two ----------------------------------------------------------------------

  showGroups(groups, answer) {
    this.a.written(groups[0].query);
    if (groups.length > 1) this.b.written(groups[1].query);
    const is = groups[0].is_probability;
    const say = (value) => output(value, is);
    if (this.shown !== this.mode || !this.picture) {
      this.shown = this.mode;
      this.head = h("div");
      const place = h("div", { class: "picture" });
      const note = h("p", { class: "note" }, "Area is share of the group; lines are means. Dots below the axis are averages of training rows, with 95% intervals.");
      this.words = h("div");
      this.table = h("div", { class: "card beside" });
      replace(this.result, h("div", null, h("div", { class: "card" }, this.head, place, note), this.words), this.table);
      this.picture?.watch.disconnect();
      this.picture = new GroupPicture(place);
    }
    const ends = hull(groups.flatMap((group) => group.curve.x), is);
    this.picture.show({
      ends, isProbability: is, text: pictureText(groups, say),
      groups: groups.map((group) => ({ cells: group.curve.x.length ? steps(group.curve) : [], mean: group.mean, rows: group.rows_mean })),
    });
    replace(this.head, groups.length > 1 ? this.comparisonHead(groups, answer, say) : this.groupHead(groups[0], say));
    const columns = groupColumns(groups, say);
    replace(this.words,
      h("div", { class: groups.length > 1 ? "two" : null }, groups.map((group, i) => h("div", { class: "card" }, groups.length > 1 ? h("h2", null, h("span", { class: `key ${"ab"[i]}`, "aria-hidden": "true" }), `Group ${"AB"[i]}`) : h("h2", null, "Can it be trusted?"), trust(group, this.card.target)))));
    replace(this.table, h("div", { class: "part-head" }, h("h2", null, "Table"), this.downloads(columns, () => [this.picture.svg])),
      table("The answer as a table", [
        ["of the model’s output", columns.slice(1).map(([heading]) => heading)],
        ...groups.map((_, i) => [groups.length > 1 ? `group ${"AB"[i]}` : "group", columns.slice(1).map(([, cells, format]) => format(cells[i])), (text) => text]),
      ]));
  }

  groupHead(group, say) {
    return [
      h("p", { class: "query" }, name(group.name, 60), group.query === "all rows" ? " over " : " where ", name(group.query, 300)),
      h("p", { class: "headline" }, say(group.mean)),
      h("p", { class: "under" }, `± ${say(group.std)} spread of the model’s output over the group, ${percent(group.share)} of the population`),
    ];
  }

  comparisonHead(groups, answer, say) {
    if (answer.difference === null) return h("p", null, "The groups cannot be compared: one has probability zero.");
    return [
      h("p", { class: "query" }, h("span", { class: "key a", "aria-hidden": "true" }), "A: ", name(groups[0].query, 200)),
      h("p", { class: "query" }, h("span", { class: "key b", "aria-hidden": "true" }), "B: ", name(groups[1].query, 200)),
      h("p", { class: "headline" }, `${answer.difference < 0 ? "−" : ""}${say(Math.abs(answer.difference))}`),
      h("p", { class: "under" }, "difference of the means, A less B",
        answer.interval ? `, probably between ${say(answer.interval[0])} and ${say(answer.interval[1])} (95%)` : "",
        answer.ratio === null ? "" : `; ratio ${figure(answer.ratio)}`,
        `. The model’s output for a random member of A is above that for one of B with probability ${percent(answer.superiority)}.`),
    ];
  }

  // -- parts of a population ------------------------------------------------------------------

  showSplit(answer) {
    this.shown = "split";
    this.a.written(answer.given);
    const is = answer.is_probability;
    const say = (value) => output(value, is);
    const sayError = is ? errorText : figure;
    const values = answer.mean.flatMap((mean, i) => (mean === null ? [] : [mean - (answer.std[i] ?? 0), mean + (answer.std[i] ?? 0), answer.rows_mean?.[i]]));
    const panels = splitPictures(answer, hull(values, is), Math.max(this.result.clientWidth - 46, 240));
    const columns = [
      ...answer.columns.map((column, i) => [column, answer.labels[i]]),
      ["share", answer.share, percent], ["mean", answer.mean, say], ["spread", answer.std, say],
      answer.standard_error?.some((one) => one !== null) ? ["standard error", answer.standard_error, sayError] : null,
      numericalError(answer).some((one) => one > 0) ? ["numerical error", numericalError(answer), sayError] : null,
      answer.rows_output?.some((one) => one !== null) ? ["mean by density", answer.density_mean, say] : null,
      answer.rows_output?.some((one) => one !== null) ? ["mean by rows", answer.rows_output, say] : null,
      answer.rows ? ["training rows", answer.rows, figure] : null,
      answer.rows_mean ? ["their average", answer.rows_mean, say] : null,
      answer.rare?.some(Boolean) ? ["rare", answer.rare.map((one) => (one ? "yes" : ""))] : null,
    ].filter((one) => one !== null);
    replace(this.result,
      h("div", { class: "card" }, h("div", { class: "part-head" }, h("h2", null, name(answer.name, 60), " by ", answer.columns.map((column, i) => [i ? ", " : "", name(column, 40)])), this.downloads(columns, () => panels.map((panel) => panel.svg))),
        h("p", { class: "legend" }, h("span", { class: "key dot" }), "mean", h("span", { class: "key spread" }), "± spread of the model’s output",
          answer.rows_mean ? [h("span", { class: "key rows" }), "training rows’ average"] : null, answer.rare?.some(Boolean) ? [h("span", { class: "key hollow" }), "rare: fewer than five training rows expected"] : null),
        h("div", { class: panels.length > 1 ? "multiples" : null }, panels.map((panel) => h("figure", null,
          panel.labels.length ? h("figcaption", null, panel.labels.map((label, i) => [i ? ", " : "", name(answer.columns[i + 1], 24), " ", h("strong", null, name(label, 30))])) : null, panel.svg)))),
      h("div", { class: "card" }, h("h2", null, "Table"),
        answer.remarks.map((remark) => h("p", { class: "note" }, name(remark, 600))), table("Parts of the population", columns), h("p", { class: "note" }, answer.exactness)));
  }

  downloads(columns, pictures) {
    const file = `${this.card.name.replace(/[^\w-]+/g, "_").slice(0, 40) || "model"}-${this.mode}`;
    return h("div", { class: "row" },
      downloadButton("CSV", `${file}.csv`, "text/csv;charset=utf-8", () => csvText(columns)),
      downloadButton("SVG", `${file}.svg`, "image/svg+xml", () => stacked(pictures(), file)));
  }
}

function valid(given) {
  return typeof given === "string" || (given !== null && typeof given === "object" && !Array.isArray(given)) ? given : null;
}

/** Several pictures in one file, below each other. */
function stacked(pictures, title) {
  if (pictures.length === 1) return svgText(pictures[0], title);
  let top = 0;
  const parts = pictures.map((picture) => {
    const text = svgText(picture, title).replace("<svg ", `<svg y="${top}" `);
    top += picture.viewBox.baseVal.height + 12;
    return text;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${pictures[0].viewBox.baseVal.width}" height="${top}">${parts.join("")}</svg>`;
}

function pictureText(groups, say) {
  return groups.map((group, i) => `${groups.length > 1 ? `Group ${"AB"[i]}` : "Group"}: ${group.mean === null ? "no answer" : `mean ${say(group.mean)}, spread ${say(group.std)}`}`).join(". ");
}

/** The columns of a table over groups: whatever numbers the service gives of them. */
function groupColumns(groups, say) {
  const given = (field) => groups.some((group) => typeof group[field] === "number");
  const sayError = groups[0].is_probability ? errorText : figure;
  const rows = [
    ["mean", (g) => g.mean, say],
    given("standard_error") && ["standard error", (g) => g.standard_error, sayError],
    given("rows_output") && ["mean by density", (g) => g.density_mean, say],
    given("rows_output") && ["mean by rows", (g) => g.rows_output, say],
    ["numerical error", numericalError, sayError],
    ["spread", (g) => g.std, say],
  ].filter(Boolean);
  for (const level of Object.keys(groups[0].quantiles)) rows.push([`${Math.round(1000 * level) / 10}% quantile`, (g) => g.quantiles[level], say]);
  rows.push(["share", (g) => g.share, percent]);
  if (groups.some((group) => group.rows !== null)) rows.push(["training rows", (g) => g.rows, figure]);
  if (groups.some((group) => group.rows_mean)) {
    rows.push(["their average", (g) => g.rows_mean?.mean ?? null, say], ["average, 95% from", (g) => g.rows_mean?.low ?? null, say], ["to", (g) => g.rows_mean?.high ?? null, say]);
  }
  return [["group", groups.map((group) => group.query)], ...rows.map(([heading, get, format]) => [heading, groups.map(get), format])];
}
