// Shows /openapi.json, and lets one try each operation. Every text is set as text.

const make = (tag, text, parent, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent?.append(element);
  return element;
};

const typeOf = (schema) =>
  schema.type ?? (schema.anyOf ?? []).map(typeOf).join(" or ") ?? "";

const example = (schema) => {
  const body = {};
  for (const name of schema.required ?? []) {
    const kind = typeOf(schema.properties[name]);
    body[name] = kind.startsWith("object") ? {} : kind.includes("number") ? 0 : kind === "array" ? [] : "";
  }
  return JSON.stringify(body, null, 2);
};

function fields(schema, parent) {
  const properties = Object.entries(schema.properties ?? {});
  if (!properties.length) return;
  const table = make("table", undefined, parent);
  make("caption", "Fields of the body", table);
  const head = make("tr", undefined, make("thead", undefined, table));
  for (const name of ["field", "type", "default", ""]) make("th", name, head, { scope: "col" });
  const rows = make("tbody", undefined, table);
  for (const [name, field] of properties) {
    const row = make("tr", undefined, rows);
    make("code", name, make("td", undefined, row));
    make("td", typeOf(field) || "anything", row);
    const required = (schema.required ?? []).includes(name);
    make("td", required ? "required" : JSON.stringify(field.default ?? null), row);
    make("td", field.description ?? "", row);
  }
}

async function send(method, path, names, body, output) {
  const url = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name].value));
  const headers = {};
  const token = document.getElementById("token").value;
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  output.textContent = "…";
  try {
    const answer = await fetch(url, { method, headers, body: body?.value });
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* no JSON */ }
    output.textContent = `${answer.status} ${answer.statusText}\n\n${shown.slice(0, 100000)}`;
  } catch (problem) {
    output.textContent = String(problem);
  }
}

function operation(method, path, described, parent) {
  const block = make("details", undefined, parent);
  const summary = make("summary", undefined, block);
  make("span", method.toUpperCase(), summary, { class: "method" });
  make("code", ` ${path} `, summary);
  make("span", described.summary ?? "", summary);
  for (const part of (described.description ?? "").split("\n\n")) if (part) make("p", part, block);
  const schema = described.requestBody?.content?.["application/json"]?.schema;
  if (schema) fields(schema, block);
  const form = make("form", undefined, block);
  const names = {};
  for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
    names[name] = make("input", undefined, make("label", `${name} `, form), { required: "" });
  }
  let body;
  if (schema) {
    body = make("textarea", undefined, make("label", "body", form), { spellcheck: "false" });
    body.value = example(schema);
  }
  make("button", "Send", form);
  const output = make("pre", "", block, { "aria-live": "polite", tabindex: "0" });
  output.hidden = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    output.hidden = false;
    send(method.toUpperCase(), path, names, body, output);
  });
  make("p", `Answers: ${Object.keys(described.responses).join(", ")}`, block);
}

const description = await (await fetch("/openapi.json")).json();
document.getElementById("title").textContent = `${description.info.title} ${description.info.version}`;
document.getElementById("about").textContent = description.info.description.replaceAll("`", "");
const place = document.getElementById("operations");
place.textContent = "";
const sections = new Map();
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, described] of Object.entries(methods)) {
    const tag = described.tags?.[0] ?? "other";
    if (!sections.has(tag)) {
      const section = make("section", undefined, place);
      make("h2", tag, section);
      sections.set(tag, section);
    }
    operation(method, path, described, sections.get(tag));
  }
}
