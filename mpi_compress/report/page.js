// Draws each job's curves from the JSON in #curves with uPlot, once they come into view: values at the pointer, a choice of axes, and a
// legend of checkboxes that take lines away.
"use strict";

(() => {
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

  const positive = (values) => values.filter((v) => v > 0);
  // Of a logarithmic axis the marks that get a line and a number: at most seven powers of ten, or 1, 2 and 5 in a short one.
  const few = (_, at) => {
    const digits = at.map((v) => v.toExponential(2)), powers = at.filter((v, k) => digits[k].startsWith("1.00"));
    const kept = powers.length < 3 ? at.filter((v, k) => "125".includes(digits[k][0])) : powers.filter((v, k) => k % Math.ceil(powers.length / 7) === 0);
    return at.map((v) => (kept.includes(v) ? v : null));
  };

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
      this.graph = element("div", { className: "graph" });
      this.graph.setAttribute("role", "img");
      this.at = element("p", { className: "small at" });
      this.rows = this.figure.lines.map((line, i) => {
        const box = element("input", { type: "checkbox", checked: true, onchange: () => {
          for (const k of [i + 1, i + 1 + this.rows.length]) this.chart.setSeries(k, { show: box.checked });
          this.describe();
        } });
        const swatch = element("span", { className: "line" });
        return { box, swatch, value: element("output", {}), name: line.label };
      });
      const all = element("button", { type: "button", textContent: "All or none", onclick: () => {
        const on = !this.rows.every(({ box }) => box.checked);
        for (const { box } of this.rows) if (box.checked !== on) box.click();
      } });
      const legend = element("fieldset", { className: "legend" }, element("legend", { textContent: "Lines" }),
        ...this.rows.map(({ box, swatch, value, name }) => element("label", {}, box, swatch, element("span", { textContent: name }), value)),
        ...(this.rows.length > 3 ? [all] : []), this.at);
      place.append(element("div", { className: "controls" }, this.select("x", "Horizontal", this.figure.labels),
        this.select("xscale", "Horizontal scale", SCALES), this.select("yscale", "Vertical scale", SCALES)),
      element("div", { className: "plot" }, this.graph, legend));
      place.hidden = false;
      this.describe();
    }

    select(key, label, options) {
      const id = `${this.place.dataset.figure}-${key}`;
      const made = element("select", { id, onchange: () => { this.state[key] = made.value; this.draw(); } },
        ...Object.entries(options).map(([value, textContent]) => element("option", { value, textContent, selected: value === this.state[key] })));
      return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: label }), made);
    }

    // The points of a line that can be drawn, along an x that grows.
    points({ x, y }) {
      const { x: column, xscale, yscale } = this.state;
      const can = (v, scale) => v !== null && (scale !== "log" || v > 0);
      const [xs, ys] = [x[column], y[column] ?? Object.values(y)[0]];
      const keep = ys.map((v, k) => k).filter((k) => can(xs[k], xscale) && can(ys[k], yscale));
      return [keep.map((k) => xs[k]), keep.map((k) => ys[k])];
    }

    // Along a logarithmic axis, which has no 0, a line begins at the left with what is straight on a linear one.
    start({ x, y }, left) {
      const [xs, ys] = [x[this.state.x], y[this.state.x] ?? Object.values(y)[0]];
      const [first] = positive(xs);
      const at = Array.from({ length: 60 }, (_, k) => left * (first / left) ** (k / 59));
      const to = ys[xs.indexOf(first)];
      return xs[0] !== 0 || !(first > left) || xs.length < 4 || to == null ? [[], []] : [at, at.map((v) => ys[0] + (v / first) * (to - ys[0]))];
    }

    draw() {
      const style = getComputedStyle(document.body);
      const [ink, grid] = ["--ink", "--line"].map((name) => style.getPropertyValue(name));
      const lines = this.figure.lines.map((line) => this.points(line));
      const left = this.state.xscale === "log" ? Math.min(...this.figure.lines.flatMap(({ x }) => positive(x[this.state.x]).slice(0, 1))) / 2 : Infinity;
      const starts = this.figure.lines.map((line) => this.start(line, left));
      const data = uPlot.join([...lines, ...starts].map((line) => (line[0].length ? line : [[], []])));
      const marks = (scale) => {
        const filter = scale === "log" ? { filter: few } : {}, line = { stroke: grid, width: 1, ...filter };
        return { grid: line, ticks: line, ...filter };
      };
      const axis = (label, size, scale) => ({ label, size, stroke: ink, ...marks(scale), values: (_, at) => at.map(text), font: `12px ${style.fontFamily}`, labelFont: `13px ${style.fontFamily}` });
      const curve = (more) => this.rows.map(({ box, name }, i) => ({ label: name, show: box.checked, stroke: colour(this.figure.lines[i]), spanGaps: true, ...more(i) }));
      const distr = (scale) => ({ time: false, distr: scale === "log" ? 3 : 1 });
      this.chart?.destroy();
      this.chart = new uPlot({
        width: this.graph.clientWidth, height: this.graph.clientHeight, legend: { show: false },
        scales: { x: distr(this.state.xscale), y: distr(this.state.yscale) },
        axes: [axis(this.figure.labels[this.state.x], 44, this.state.xscale), axis(this.figure.y, 62, this.state.yscale)],
        series: [{}, ...curve((i) => ({ dash: dash(this.figure.lines[i]), width: 2, points: { show: lines[i][0].length < 30, size: 5 } })),
          ...curve(() => ({ dash: [1, 3], width: 1, points: { show: false } }))],
        cursor: { drag: { x: true, y: true }, dataIdx: (chart, i, at) => this.nearest(chart.data[i], at) },
        hooks: { setCursor: [(chart) => this.values(chart)] },
      }, data, this.graph);
      this.rows.forEach(({ swatch }, i) => { swatch.innerHTML = `<svg width="34" height="4" aria-hidden="true"><line y1="2" x2="34" y2="2" stroke="${colour(this.figure.lines[i])}" stroke-width="3" stroke-dasharray="${dash(this.figure.lines[i])}"/></svg>`; });
      this.describe();
    }

    // Lines have x of their own: the nearest row in which this one has a value.
    nearest(values, at) {
      for (let far = 0; far < values.length; far++) {
        for (const k of [at - far, at + far]) if (values[k] != null) return k;
      }
      return at;
    }

    values(chart) {
      const at = chart.cursor.idx;
      this.at.textContent = at == null ? "" : `${this.figure.labels[this.state.x]}: ${text(chart.data[0][at])}`;
      this.rows.forEach(({ value }, i) => { value.textContent = at == null ? "" : text(chart.data[i + 1][chart.cursor.idxs[i + 1]]); });
    }

    describe() {
      const names = this.rows.filter(({ box }) => box.checked).map(({ name }) => name);
      this.graph.setAttribute("aria-label", `${this.figure.y} against ${this.figure.labels[this.state.x]}, ${names.length} lines: ${names.slice(0, 12).join("; ")}. Final values are in the table below.`);
    }
  }

  const places = new Map([...document.querySelectorAll(".explorer")].map((place) => [place, new Curves(place)]));
  const drawn = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((e) => e.isIntersecting && !drawn.has(e.target))) { drawn.add(target); places.get(target).draw(); }
  }, { rootMargin: "400px" });
  for (const place of places.keys()) seen.observe(place);
  const again = () => drawn.forEach((place) => places.get(place).draw());
  dark.addEventListener("change", again);
  window.addEventListener("resize", again);
})();
