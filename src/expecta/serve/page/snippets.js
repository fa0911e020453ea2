// A case as it is asked for elsewhere: JSON, curl, Python.

import { hasToken, modelPath } from "./requests.js";

/** JSON in which letters that cannot be seen, or turn the text around, are written by their code. */
function json(value, indent) {
  return JSON.stringify(value, null, indent).replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function asJson(request) {
  return json(request, 2);
}

export function asCurl(model, request) {
  const body = json(request).replaceAll("'", "'\\''");
  const token = hasToken() ? ` \\\n  -H "Authorization: Bearer $TOKEN"` : "";
  const url = `${location.origin}${modelPath(model, "case")}`.replaceAll("'", "'\\''");
  return `curl -s '${url}'${token} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

function literal(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return json(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if ("between" in value) return `(${value.between.map(literal).join(", ")})`;
  if ("in" in value) return literal(value.in);
  return `{${Object.entries(value).map(([key, one]) => `${literal(key)}: ${literal(one)}`).join(", ")}}`;
}

export function asPython(card, request) {
  const { row } = request;
  const soft = Object.values(row).some((value) => typeof value === "object" && value !== null);
  const of = request.of === null || request.of === undefined ? "" : `, of=${literal(request.of)}`;
  const lines = [
    `from expecta import ${card.kind}`, "",
    `model = ${card.kind}.load(${literal(`${card.name}.expecta`)})`,
    `known = ${literal(row)}`,
  ];
  const table = "{name: [known.get(name)] for name in model.feature_names_in_}";
  if (soft) lines.push(`print(model.ask(known${of}))`);
  else {
    lines.push(`rows = ${table}`);
    if (card.task === "classification") lines.push("print(model.predict_proba(rows))");
    else lines.push("print(model.predict(rows, return_std=True))");
    if (card.intervals) lines.push(`print(model.predict_interval(rows, ${request.coverage}))`);
    if (typeof request.threshold === "number") lines.push(`print(model.stability(rows, ${request.threshold}${of}))`);
    lines.push(`print(model.shapley(rows${of}))`);
  }
  lines.push(`print(model.next_question(known${of}))`);
  return lines.join("\n");
}
