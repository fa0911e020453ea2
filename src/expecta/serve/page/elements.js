// Make elements. Texts become text nodes: nothing that a model or a person wrote is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: its attributes (`onclick` and so on take functions), and children. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A name or a category of the data: kept apart from the direction of the text around it. */
export function name(text, most = 80) {
  const whole = String(text);
  const shown = shorten(whole, most);
  return h("bdi", { class: "name", title: shown === whole ? null : shorten(whole, 1000) }, shown);
}

/** The same within SVG, which has no such element. */
export function isolated(text, most = 40) {
  return `\u2068${shorten(String(text), most)}\u2069`;
}

export function shorten(text, most) {
  const letters = [...text.slice(0, 2 * most + 2)];
  const visible = (letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join(""));
  return visible.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

let count = 0;
/** An id that no other element has. */
export function newId(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

/** A group of radio buttons that look like one control. */
export function segments(label, choices, chosen, onchange) {
  const group = newId("choice");
  return h("div", { class: "segments", role: "radiogroup", "aria-label": label },
    choices.map(([value, text]) => h("label", null,
      h("input", { type: "radio", name: group, value, checked: value === chosen, onchange: () => onchange(value) }),
      h("span", null, text))));
}
