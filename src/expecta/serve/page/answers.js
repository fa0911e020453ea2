// Pieces of answers that several views show.

import { h, name } from "./elements.js";
import { change, evidenceText, figure, output, percent } from "./numbers.js";

/** A problem that the service named, for people to read. */
export function problemBox(error) {
  const problem = error.document ?? {};
  const where = problem.query !== undefined && problem.position !== undefined
    ? h("pre", { class: "where" }, `${problem.query}\n${" ".repeat(Math.max(problem.position, 0))}^`) : null;
  return h("div", { class: "problem", role: "alert" }, h("strong", null, "No answer. "), name(error.message, 1200), where);
}

/** How remarks begin that are about the rows of a group: a complete case is no group. */
const OF_GROUPS = ["The group is rare", "Training rows are not in", "Over the training rows", "The density ("];

/** Whether a number can be trusted: first what it rests on, then what is exact. */
export function trust(group, target, complete = false) {
  const remarks = group.remarks ?? [];
  const { rows } = group;
  const care = !complete && (rows !== null && rows !== undefined ? rows < 5 : remarks.some((remark) => remark.startsWith("The group is rare")));
  const lines = [complete ? null : combinedMean(group)];
  if (complete) {
    lines.push("Everything is known: this is the model’s own output, whatever the density.");
  } else if (care) {
    const found = rows === 0 ? "no training row is like this. " : rows > 0 ? `only ${rowCount(rows)} like this. ` : "hardly any training row is like this. ";
    lines.push([h("strong", null, "Take care: ", found), "The answer rests on what the learned density makes of similar rows."]);
  } else if (rows !== null && rows !== undefined) {
    lines.push([h("strong", null, `${rowCount(rows)} like this`), group.rows_mean ? [": ", rowsAverage(group, target)] : "."]);
  }
  return h("div", { class: care ? "trust care" : "trust" },
    lines.filter(Boolean).map((line) => h("p", null, line)),
    remarks.filter((remark) => !(complete && OF_GROUPS.some((start) => remark.startsWith(start)))).map((remark) => h("p", { class: "note" }, name(remark, 600))),
    exactness(group));
}

function rowCount(rows) {
  return `${figure(rows)} training ${rows === 1 ? "row" : "rows"}`;
}

function rowsAverage(group, target) {
  const { mean, low, high } = group.rows_mean;
  const say = (value) => output(value, group.is_probability);
  const ends = ` (95% interval ${say(low)} to ${say(high)}).`;
  if (group.is_probability) return [`${say(mean)} of them are `, name(/^P\((.*)\)$/s.exec(group.name)?.[1] ?? group.name, 40), ends];
  return ["the average of their ", name(target ?? group.name, 60), ` is ${say(mean)}`, ends];
}

/** How exact the arithmetic is, in a few words, and in full on request. */
function exactness(group) {
  const error = numericalError(group);
  const word = error === 0 ? "The arithmetic is exact, given the learned density."
    : error > 0 ? `The arithmetic is within ${figure(error)}, given the learned density.` : "What is exact";
  return h("details", { class: "exactness" }, h("summary", null, word), h("p", { class: "note" }, group.exactness));
}

export function numericalError(answer) {
  return answer.numerical_error ?? answer.error;
}

/** How far the mean over a group may be off, and what it is by each source. */
function combinedMean(group) {
  if (typeof group.standard_error !== "number" || !group.interval) return null;
  const say = (value) => output(value, group.is_probability);
  const [low, high] = group.interval;
  const alone = group.population === "both" ? "" : " alone";
  const parts = [group.population === "rows" ? "by the rows alone" : `by the density${alone} ${say(group.density_mean)}`];
  if (typeof group.rows_output === "number") parts.push(`over the training rows ${say(group.rows_output)}${alone ? "" : `, which count ${percent(group.rows_weight)}`}`);
  return [h("strong", null, `The mean is probably between ${say(low)} and ${say(high)}`), ` (95%; ${parts.join(", ")}).`];
}

/** Horizontal bars with words at both sides: [label, value text, share of the width, kind]. */
export function bars(rows, caption) {
  return h("ol", { class: "bars", "aria-label": caption }, rows.map(({ label, text, from = 0, to, kind = "", title }) => {
    const bar = h("span", { class: `bar ${kind}` });
    bar.style.left = `${100 * Math.min(from, to)}%`;
    bar.style.width = `${100 * Math.abs(to - from)}%`;
    return h("li", { title }, h("span", { class: "bar-label" }, label), h("span", { class: "bar-track", "aria-hidden": "true" }, bar), h("span", { class: "bar-text" }, text));
  }));
}

/** What each known column adds, from everyone's mean to the prediction. */
export function contributionBars(contributions, isProbability, facts, row = 0) {
  const known = contributions.columns
    .map((column, i) => ({ column, value: contributions.values[row][i], text: evidenceText(facts[column]) }))
    .filter((one) => one.value !== null)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  let at = contributions.base;
  const stops = known.map((one) => ({ ...one, from: at, to: (at += one.value) }));
  const all = [contributions.base, contributions.prediction[row], ...stops.map((stop) => stop.to)];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const place = (value) => (high > low ? (value - low) / (high - low) : 0);
  return bars([
    { label: "nothing known", text: output(contributions.base, isProbability), from: place(contributions.base) - 0.004, to: place(contributions.base) + 0.004, kind: "base" },
    ...stops.map((stop) => ({
      label: [name(stop.column, 24), " ", h("span", { class: "known" }, name(stop.text, 24))],
      text: change(stop.value, isProbability), from: place(stop.from), to: place(stop.to), kind: stop.value < 0 ? "less" : "more",
    })),
    { label: "this case", text: output(contributions.prediction[row], isProbability), from: place(contributions.prediction[row]) - 0.004, to: place(contributions.prediction[row]) + 0.004, kind: "base" },
  ], "What each known column adds");
}

/** A table: columns of [heading, cells, format]. */
export function table(caption, columns) {
  const length = columns[0][1].length;
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", null,
    h("caption", { class: "hidden" }, caption),
    h("thead", null, h("tr", null, columns.map(([heading, , format]) => h("th", { scope: "col", class: format ? "number" : null }, name(heading))))),
    h("tbody", null, Array.from({ length }, (_, i) => h("tr", null, columns.map(([, cells, format], at) =>
      h(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: format ? "number" : null }, format ? format(cells[i]) : name(cells[i] ?? "—", 60))))))));
}

/** The same columns as a file: numbers to the last digit, texts that no spreadsheet runs. */
export function csvText(columns) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [columns.map(([heading]) => cell(heading))];
  for (let i = 0; i < columns[0][1].length; i += 1) lines.push(columns.map(([, cells]) => cell(cells[i])));
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

export function download(file, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function downloadButton(text, file, type, make) {
  return h("button", { type: "button", class: "quiet", onclick: () => download(file, type, make()) }, text);
}

/** A button that copies, and says so. */
export function copyButton(text, make) {
  const button = h("button", { type: "button", class: "quiet", onclick: async () => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(make());
    } catch {
      said = "Select and copy";
    }
    button.textContent = said;
    setTimeout(() => { button.textContent = text; }, 1500);
  } }, text);
  return button;
}

