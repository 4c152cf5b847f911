// Draws the curves of #curves with uPlot once they come into view: values at the pointer, a choice of axes, checkboxes for lines.

const figures = JSON.parse(document.getElementById("curves").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
// Okabe and Ito's colours as in figures; black and yellow are changed for one of more contrast with the ground.
const COLOURS = {
  light: ["#0072B2", "#D55E00", "#009E73", "#B8568F", "#A67300", "#2E93C9", "#7A4FB5", "#8C5A2B", "#9B1B30", "#222222"],
  dark: ["#56B4E9", "#F08A3C", "#2FC796", "#E39AC4", "#E8B02E", "#9AD1F5", "#B99AF0", "#D2A679", "#F0788C", "#F2F2F2"],
};
const DASHES = [[], [8, 3], [3, 2], [9, 3, 2, 3], [9, 2, 2, 2, 2, 2], [16, 4], [16, 3, 5, 3], [5, 2, 5, 2, 2, 2]];
const SCALES = { linear: "linear", log: "logarithmic" };
// A hue for each method; of a grid's values the least is the nearest to the ground.
const colour = ({ hue, tone }) => `color-mix(in srgb, ${(tone < 0) === dark.matches ? "black" : "white"} ${45 * Math.abs(tone)}%, ${COLOURS[dark.matches ? "dark" : "light"][hue % 10]})`;
const dash = ({ dash }) => DASHES[dash % DASHES.length];
const short = (v) => (v !== 0 && (Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3) ? v.toExponential().replace("e+", "e") : `${v}`);
const text = (v) => (v == null ? "" : short(Number(v.toPrecision(5))));

// Of a logarithmic axis the marks that get a line and a number: at most seven powers of ten, or 1, 2 and 5 in a short one.
const few = (_, at) => {
  const digits = at.map((v) => v.toExponential(2)), powers = at.filter((v, k) => digits[k].startsWith("1.00"));
  const kept = powers.length < 3 ? at.filter((v, k) => "125".includes(digits[k][0])) : powers.filter((v, k) => k % Math.ceil(powers.length / 7) === 0);
  return at.map((v) => (kept.includes(v) ? v : null));
};

// Lines have x of their own: the nearest row in which this one has a value.
const nearest = (values, at) => values.reduce((best, v, k) => (v != null && Math.abs(k - at) < Math.abs(best - at) ? k : best), Infinity);

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

class Curves {
  constructor(place) {
    this.place = place;
    this.figure = figures[place.dataset.figure];
    this.state = { x: Object.keys(this.figure.labels)[0], xscale: this.figure.xscale, yscale: this.figure.yscale };
    this.graph = element("div", { className: "graph", role: "img" });
    this.at = element("p", { className: "small at" });
    this.rows = this.figure.lines.map((line, i) => {
      const box = element("input", { type: "checkbox", checked: true, wanted: true, onchange: () => this.chart.setSeries(i + 1, { show: box.wanted = box.checked }) });
      return { box, swatch: element("span", { className: "line" }), value: element("output", {}), why: element("small", {}), name: line.label };
    });
    const toggle = element("button", { type: "button", textContent: "All or none", onclick: () => {
      const rows = this.rows.filter(({ box }) => !box.disabled), all = rows.every(({ box }) => box.checked);
      for (const { box } of rows) if (box.checked === all) box.click();
    } });
    const legend = element("fieldset", { className: "legend" }, element("legend", { textContent: "Lines" }),
      ...this.rows.map(({ box, swatch, value, why, name }) => element("label", {}, box, swatch, element("span", {}, name, why), value)),
      ...(this.rows.length > 3 ? [toggle] : []), this.at);
    place.append(element("div", { className: "controls" }, this.select("x", "Horizontal", this.figure.labels),
      this.select("xscale", "Horizontal scale", SCALES), this.select("yscale", "Vertical scale", SCALES)),
    element("div", { className: "plot" }, this.graph, legend));
    this.describe();
  }

  select(key, label, options) {
    const id = `${this.place.dataset.figure}-${key}`;
    const made = element("select", { id, onchange: () => { this.state[key] = made.value; this.draw(); } },
      ...Object.entries(options).map(([value, textContent]) => element("option", { value, textContent, selected: value === this.state[key] })));
    return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: label }), made);
  }

  // The points of a line that can be drawn, along an x that grows; and why there is none, or "".
  points({ x, y }) {
    const { x: column, xscale, yscale } = this.state;
    const can = (v, scale) => v !== null && (scale !== "log" || v > 0);
    const [xs, ys] = [x[column] ?? [], y[column] ?? Object.values(y)[0]];
    const keep = xs.map((v, k) => k).filter((k) => can(xs[k], xscale) && can(ys[k], yscale));
    const axes = xs.some((v) => can(v, xscale)) ? "these axes" : "this axis", zero = Math.min(...xs, ...ys) < 0 ? "0 or less" : "0";
    const why = keep.length ? "" : `no value on ${axes}: ${x[column] ? `${zero} on a logarithmic axis` : "the cost of another model"}`;
    return { points: [xs, ys].map((values) => keep.map((k) => values[k])), why };
  }

  draw() {
    const style = getComputedStyle(document.body);
    const [ink, grid] = ["--ink", "--line"].map((name) => style.getPropertyValue(name));
    const lines = this.figure.lines.map((line) => this.points(line));
    const axis = (label, size, scale) => {
      const filter = scale === "log" ? { filter: few } : {}, line = { stroke: grid, width: 1, ...filter };
      const [font, labelFont] = [12, 13].map((px) => `${px}px ${style.fontFamily}`);
      return { label, size, stroke: ink, grid: line, ticks: line, ...filter, values: (_, at) => at.map(text), font, labelFont };
    };
    const curve = ({ box, why, name }, i) => {
      const line = this.figure.lines[i], points = { show: lines[i].points[0].length < 30, size: 5 };
      why.textContent = lines[i].why;
      Object.assign(box, { disabled: lines[i].why !== "", checked: box.wanted && !lines[i].why });
      return { label: name, show: box.checked, stroke: colour(line), dash: dash(line), width: 2, spanGaps: true, points };
    };
    const distr = (scale) => ({ time: false, distr: scale === "log" ? 3 : 1 });
    this.chart?.destroy();
    this.chart = new uPlot({
      width: this.graph.clientWidth, height: this.graph.clientHeight, legend: { show: false },
      scales: { x: distr(this.state.xscale), y: distr(this.state.yscale) },
      axes: [axis(this.figure.labels[this.state.x], 44, this.state.xscale), axis(this.figure.y, 62, this.state.yscale)],
      series: [{}, ...this.rows.map(curve)],
      cursor: { drag: { x: true, y: true }, dataIdx: (chart, i, at) => nearest(chart.data[i], at) },
      hooks: { setCursor: [(chart) => this.values(chart)], setSeries: [() => this.describe()] },
    }, uPlot.join(lines.map(({ points }) => points)), this.graph);
    this.rows.forEach(({ swatch }, i) => { swatch.innerHTML = `<svg width="34" height="4" aria-hidden="true"><line y1="2" x2="34" y2="2" stroke="${colour(this.figure.lines[i])}" stroke-width="3" stroke-dasharray="${dash(this.figure.lines[i])}"/></svg>`; });
    this.describe();
  }

  values(chart) {
    const at = chart.cursor.idx;
    this.at.textContent = at == null ? "" : `${this.figure.labels[this.state.x]}: ${text(chart.data[0][at])}`;
    this.rows.forEach(({ value }, i) => { value.textContent = at == null ? "" : text(chart.data[i + 1][chart.cursor.idxs[i + 1]]); });
  }

  describe() {
    const names = this.rows.filter(({ box }) => box.checked).map(({ name }) => name);
    this.graph.ariaLabel = `${this.figure.y} against ${this.figure.labels[this.state.x]}, ${names.length} lines: ${names.slice(0, 12).join("; ")}. Final values are in the table below.`;
  }
}

const places = new Map([...document.querySelectorAll(".explorer")].map((place) => [place, new Curves(place)]));
const seen = new IntersectionObserver((entries) => {
  for (const curves of entries.filter((e) => e.isIntersecting).map((e) => places.get(e.target))) if (!curves.chart) curves.draw();
}, { rootMargin: "400px" });
for (const place of places.keys()) seen.observe(place);
const again = () => [...places.values()].filter(({ chart }) => chart).forEach((curves) => curves.draw());
dark.addEventListener("change", again);
window.addEventListener("resize", again);
