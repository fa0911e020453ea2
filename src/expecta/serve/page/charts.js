// Draw answers as SVG. Curves are the service's: shares between the points at which it gives the cdf.

import { isolated, s } from "./elements.js";
import { output, percent, tickText, ticks } from "./numbers.js";

const STILL = window.matchMedia("(prefers-reduced-motion: reduce)");
const MOVE = 260; // milliseconds that a curve takes to its new form
const CELLS = 50; // steps of a curve, at most
const PAD = 14;

/** Steps of a curve: [left, right, height], the area of each its share. */
export function steps(curve) {
  const by = Math.max(1, Math.round((curve.x.length - 1) / CELLS));
  const cells = [];
  for (let i = 0; i + 1 < curve.x.length; i += by) {
    const j = Math.min(i + by, curve.x.length - 1);
    const [left, right] = [curve.x[i], curve.x[j]];
    cells.push([left, right, right > left ? (curve.cdf[j] - curve.cdf[i]) / (right - left) : 0]);
  }
  return cells;
}

function highest(cells) {
  return Math.max(...cells.map((cell) => cell[2]), 0) || 1;
}

function stairs(cells, x, y) {
  if (cells.length === 0) return "";
  const points = [`M${x(cells[0][0])} ${y(0)}`];
  for (const [left, right, height] of cells) {
    points.push(`L${x(left)} ${y(height)}L${x(right)} ${y(height)}`);
  }
  return `${points.join("")}L${x(cells.at(-1)[1])} ${y(0)}Z`;
}

const round = (value) => Math.round(10 * value) / 10;

function scale(low, high, from, to) {
  const by = high > low ? (to - from) / (high - low) : 0;
  return (value) => round(from + (value - low) * by);
}

/** Ends that hold all values, with a little room. */
export function hull(values, isProbability) {
  if (isProbability) return [0, 1];
  const known = values.filter((value) => typeof value === "number" && Number.isFinite(value));
  if (known.length === 0) return [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = 0.02 * (high - low) || 0.1 * Math.abs(low) || 1;
  return [low - room, high + room];
}

function axis(svg, x, low, high, top, bottom, width, isProbability) {
  const largest = Math.max(Math.abs(low), Math.abs(high));
  for (const tick of ticks(low, high, Math.max(3, Math.floor(width / 64)))) {
    svg.append(
      s("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom }),
      s("text", { class: "tick", x: x(tick), y: bottom + 16, "text-anchor": x(tick) > x(high) - 12 ? "end" : x(tick) < 12 ? "start" : "middle" }, tickText(tick, isProbability, largest)),
    );
  }
  svg.append(s("line", { class: "axis", x1: x(low), x2: x(high), y1: bottom, y2: bottom }));
}

function label(text, x, y, low, high, kind) {
  const middle = (low + high) / 2;
  const near = Math.abs(x - middle) / (high - low) > 0.3;
  const anchor = !near ? "middle" : x > middle ? "end" : "start";
  const at = near ? x + (x > middle ? 5 : -5) : x;
  return s("text", { class: kind, x: Math.min(Math.max(at, low), high), y, "text-anchor": anchor }, text);
}

/** A picture that follows the width of its element, and moves from one state to the next. */
class Picture {
  constructor(element, height) {
    this.element = element;
    this.svg = s("svg", { class: "chart", role: "img", height, focusable: "false" });
    this.height = height;
    element.replaceChildren(this.svg);
    this.watch = new ResizeObserver(() => this.state && this.draw(this.state));
    this.watch.observe(element);
  }

  get width() {
    return Math.max(this.element.clientWidth, 220);
  }

  begin(text) {
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("aria-label", text);
    this.svg.replaceChildren();
  }

  show(state) {
    const before = this.state;
    this.state = state;
    cancelAnimationFrame(this.frame);
    if (before === undefined || STILL.matches || document.hidden) {
      this.draw(state);
      return;
    }
    const start = performance.now();
    const step = (now) => {
      const t = Math.min(1, (now - start) / MOVE);
      this.draw(between(before, state, 1 - (1 - t) ** 3));
      if (t < 1 && this.state === state) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }
}

/** A state on the way from one to another: numbers and lists of numbers of equal length move. */
function between(a, b, t) {
  if (t >= 1) return b;
  if (typeof a === "number" && typeof b === "number") return a + t * (b - a);
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) return b.map((one, i) => between(a[i], one, t));
  if (a && b && typeof a === "object" && typeof b === "object" && !Array.isArray(a) && !Array.isArray(b)) {
    return Object.fromEntries(Object.entries(b).map(([key, value]) => [key, between(a[key], value, t)]));
  }
  return b;
}

/**
 * One case: the distribution of the model's output over the unknown inputs, that of everyone behind
 * it, below it the interval of the target, and the threshold through both.
 */
export class CasePicture extends Picture {
  constructor(element, hasTarget) {
    super(element, hasTarget ? 300 : 220);
    this.hasTarget = hasTarget;
  }

  draw(state) {
    this.begin(state.text);
    const { svg, width } = this;
    const [low, high] = state.ends;
    const bottom = this.height - 24;
    const lane = this.hasTarget ? 180 : bottom;
    const x = scale(low, high, PAD, width - PAD);
    const upper = (cells, top) => scale(0, highest(cells), lane - 1, top);
    axis(svg, x, low, high, 32, bottom, width, state.isProbability);
    if (state.everyone.length) svg.append(s("path", { class: "everyone", d: stairs(state.everyone, x, upper(state.everyone, 76)) }));
    if (state.cells.length) svg.append(s("path", { class: "curve a", d: stairs(state.cells, x, upper(state.cells, 40)) }));
    if (this.hasTarget) {
      svg.append(s("line", { class: "axis", x1: PAD, x2: width - PAD, y1: lane, y2: lane }));
      svg.append(s("text", { class: "lane", x: PAD, y: lane + 17 }, isolated(state.targetText, 60)));
      if (state.targetCells.length) {
        svg.append(s("path", { class: "curve b", d: stairs(state.targetCells, x, scale(0, highest(state.targetCells), bottom - 16, lane + 26)) }));
      }
      if (state.interval) {
        const [from, to] = state.interval.map(x);
        svg.append(
          s("line", { class: "interval", x1: from, x2: to, y1: bottom - 9, y2: bottom - 9 }),
          s("path", { class: "interval ends", d: `M${from} ${bottom - 15}v12M${to} ${bottom - 15}v12` }),
        );
      }
    }
    svg.append(s("text", { class: "lane", x: PAD, y: 12 }, state.everyone.length ? "Model’s output (grey: everyone, own scale)" : "Model’s output"));
    if (typeof state.mean === "number") {
      svg.append(s("line", { class: "mean", x1: x(state.mean), x2: x(state.mean), y1: 32, y2: lane }));
      svg.append(label(`expected ${output(state.mean, state.isProbability)}`, x(state.mean), 28, PAD, width - PAD, "mean-text"));
    }
    if (typeof state.threshold === "number" && state.threshold >= low && state.threshold <= high) {
      svg.append(s("line", { class: "threshold", x1: x(state.threshold), x2: x(state.threshold), y1: 36, y2: bottom }));
      const text = `≥ ${output(state.threshold, state.isProbability)}`;
      const room = 8 * text.length + 8;
      const at = x(state.threshold);
      const left = at + room > width - PAD || (x(state.mean ?? low) > at && x(state.mean ?? low) < at + room && at - room > 0);
      svg.append(s("text", { class: "threshold-text", x: at + (left ? -5 : 5), y: 46, "text-anchor": left ? "end" : "start" }, text));
    }
  }
}

/** One or two groups: the distribution of the model's output over each. */
export class GroupPicture extends Picture {
  constructor(element) {
    super(element, 240);
  }

  draw(state) {
    this.begin(state.text);
    const { svg, width } = this;
    const [low, high] = state.ends;
    const bottom = this.height - 40;
    const x = scale(low, high, PAD, width - PAD);
    const top = Math.max(...state.groups.map((group) => highest(group.cells)));
    axis(svg, x, low, high, 26, bottom, width, state.isProbability);
    state.groups.forEach((group, i) => {
      const kind = "ab"[i];
      const y = scale(0, top, bottom - 1, 34);
      if (group.cells.length) svg.append(s("path", { class: `curve ${kind}`, d: stairs(group.cells, x, y) }));
      if (typeof group.mean !== "number") return;
      svg.append(s("line", { class: `mean ${kind}`, x1: x(group.mean), x2: x(group.mean), y1: 30, y2: bottom }));
      const letter = state.groups.length > 1 ? `${"AB"[i]} ` : "";
      svg.append(label(`${letter}${output(group.mean, state.isProbability)}`, x(group.mean), i === 0 ? 12 : 26, PAD, width - PAD, `mean-text ${kind}`));
    });
    state.groups.forEach((group, i) => {
      if (!group.rows) return;
      const y = bottom + 24 + 8 * i;
      const [from, middle, to] = [group.rows.low, group.rows.mean, group.rows.high].map((v) => x(Math.min(Math.max(v, low), high)));
      svg.append(
        s("line", { class: `rows ${"ab"[i]}`, x1: from, x2: to, y1: y, y2: y }),
        s("circle", { class: `rows ${"ab"[i]}`, cx: middle, cy: y, r: 3.5 }),
      );
    });
  }
}

const ROW = 26;
const PANEL = 300; // least width of a small multiple
const GAP = 18;
const PANELS = 60; // small multiples that are drawn

/** A population divided by columns: a panel for each part by the later ones, a line for each by the first. */
export function splitPictures(answer, ends, room) {
  const panels = new Map();
  answer.share.forEach((share, i) => {
    const key = JSON.stringify(answer.labels.slice(1).map((column) => column[i]));
    if (!panels.has(key)) panels.set(key, []);
    panels.get(key).push(i);
  });
  const across = Math.max(1, Math.min(panels.size, Math.floor((room + GAP) / (PANEL + GAP))));
  const width = Math.min(Math.floor((room - GAP * (across - 1)) / across), 760);
  return [...panels.entries()].slice(0, PANELS).map(([key, indices]) => ({
    labels: JSON.parse(key), svg: splitPanel(answer, indices, ends, width),
  }));
}

function splitPanel(answer, indices, [low, high], width) {
  const gutter = Math.min(0.36 * width, 130);
  const height = indices.length * ROW + 34;
  const bottom = height - 24;
  const is = answer.is_probability;
  const x = scale(low, high, gutter + 8, width - PAD);
  const text = indices.map((i) => `${answer.labels[0][i]}: ${output(answer.mean[i], is)}`).slice(0, 30).join("; ");
  const svg = s("svg", { class: "chart", role: "img", viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": `${answer.name} by ${answer.columns[0]}: ${text}`.slice(0, 2000) });
  axis(svg, x, low, high, 4, bottom, width - gutter, is);
  const clip = (value) => x(Math.min(Math.max(value, low), high));
  indices.forEach((i, line) => {
    const y = 4 + ROW * line + ROW / 2;
    const letters = Math.max(6, Math.floor(gutter / 7.2));
    svg.append(s("text", { class: "row-label", x: gutter, y: y + 4, "text-anchor": "end" }, isolated(answer.labels[0][i], letters)));
    const mean = answer.mean[i];
    if (mean === null) return;
    const spread = answer.std[i] ?? 0;
    svg.append(s("line", { class: "spread", x1: clip(mean - spread), x2: clip(mean + spread), y1: y, y2: y }));
    const rows = answer.rows_mean?.[i];
    if (typeof rows === "number") svg.append(s("path", { class: "rows-mark", d: `M${clip(rows)} ${y - 8}v16` }));
    svg.append(s("circle", { class: answer.rare?.[i] ? "dot rare" : "dot", cx: clip(mean), cy: y, r: 5 },
      s("title", null, `${answer.labels[0][i]}: ${output(mean, is)}, ${percent(answer.share[i])} of the population`.slice(0, 300))));
  });
  return svg;
}

/** The population of a column behind its slider; what is chosen is marked. */
export function histogram(column, low, high) {
  const { edges, shares } = column.histogram;
  const top = Math.max(...shares) || 1;
  const x = scale(low, high, 0, 1000);
  const clip = (value) => Math.min(Math.max(x(value), -30), 1030);
  const bars = shares.map((share, i) => {
    const [left, right] = [clip(edges[i]), clip(edges[i + 1])];
    return s("rect", { x: left + 1, width: Math.max(right - left - 2, 1), y: 40 - 38 * (share / top), height: 38 * (share / top) + 0.5 });
  });
  const svg = s("svg", { class: "histogram", viewBox: "0 0 1000 40", preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
  const mark = (from, to) => bars.forEach((bar, i) => {
    const half = (edges[i + 1] - edges[i]) / 2;
    bar.classList.toggle("chosen", from !== null && edges[i] + half >= from - half && edges[i] + half <= to + half);
  });
  return { svg, mark };
}

const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-family", "font-size", "font-weight", "opacity"];

/** A picture as a file of its own: the styles that the page gives it are written into it. */
export function svgText(svg, title) {
  const copy = svg.cloneNode(true);
  const [from, to] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const property of COPIED) to[i].setAttribute(property, style.getPropertyValue(property));
    to[i].removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.prepend(s("title", null, title), s("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}
