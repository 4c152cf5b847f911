// Draws every figure from the JSON in #data: controls, a legend of checkboxes, and a Plotly graph that is made when it comes into view.
"use strict";

(() => {
  const { names, figures } = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  // Okabe and Ito's colours; black and yellow are changed for one of more contrast with the ground.
  const COLOURS = {
    light: ["#0072B2", "#D55E00", "#009E73", "#B8568F", "#A67300", "#2E93C9", "#222222", "#7A4FB5"],
    dark: ["#56B4E9", "#F08A3C", "#2FC796", "#E39AC4", "#E8B02E", "#9AD1F5", "#F2F2F2", "#B99AF0"],
  };
  const DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"];
  const MARKS = 8; // of a line
  const ROOM = 0.09; // of a logarithmic axis, between 0 and what comes first

  const isDark = () => dark.matches && !printing;
  const palette = () => COLOURS[isDark() ? "dark" : "light"];
  // A colour for a method and dashes for its parameters, where several methods have several of them, as `figures.style.looks` has it.
  const look = (k, bounds, labels) => {
    const parts = labels.map((label) => label.split(/(?=, \w+ = )/));
    const [methods, values] = [parts.map(([method]) => method), parts.map(([, ...rest]) => rest.join(""))].map((each) => [...new Set(each)]);
    const paired = !bounds && methods.length > 1 && methods.length < labels.length && methods.length <= palette().length && values.length <= DASHES.length;
    const i = paired ? methods.indexOf(parts[k][0]) : k;
    return {
      colour: palette()[i % palette().length],
      dash: bounds ? "solid" : DASHES[paired ? values.indexOf(parts[k].slice(1).join("")) : (i + Math.floor(i / palette().length)) % DASHES.length],
      symbol: SYMBOLS[(i + Math.floor(i / SYMBOLS.length)) % SYMBOLS.length],
    };
  };

  // Plotly reads labels as HTML of its own.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const title = (column, view) => view.names[column] ?? names[column] ?? column;

  // A column's numbers: its own, or those that follow from another column.
  function numbers(series, column) {
    const own = series.columns[column];
    if (own === undefined || Array.isArray(own)) return own;
    if (own === null || typeof own === "number") return [own];
    return numbers(series, own.of).map((v) => (v === null ? null : own.times * v + own.plus));
  }

  const end = (series, column, which) => series[which]?.[column] ?? numbers(series, column);

  // What can stand on a logarithmic axis, and up to where curves are drawn if one of them diverges.
  const drawable = (values, scale, highest = Infinity) => values.map((v) => (v === null || v > highest || (scale === "log" && !(v > 0)) ? null : v));

  function translucent(colour) {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},0.2)`;
  }

  // Bounds are drawn, and then they are what is dashed, beside the column that they are of.
  const withBounds = (view, state) => view.bounds.length > 0 && state.y === view.y;

  // Noise is a running median in its band, with its rows as faint points.
  function noise(smooth, state, common, name, colour, highest) {
    const x = drawable(smooth.x[state.x], state.xscale);
    const band = { ...common, x, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    return [
      { ...band, y: drawable(smooth.low, state.yscale, highest) },
      { ...band, y: drawable(smooth.high, state.yscale, highest), fill: "tonexty", fillcolor: translucent(colour) },
      { ...common, x, y: drawable(smooth.y, state.yscale, highest), name, customdata: x.map((v, k) => [v, smooth.y[k], "<br>running median"]) },
    ];
  }

  function lines(view, state) {
    const [traces, starts] = [[], []];
    const bounds = withBounds(view, state);
    const highest = view.ceilings[state.y] ?? Infinity;
    view.series.forEach((series, i) => {
      const [xs, ys] = [numbers(series, state.x), numbers(series, state.y)];
      if (!state.shown[i] || !xs || !ys) return;
      const { colour, dash, symbol } = look(i, bounds, stems(view));
      const x = drawable(xs, state.xscale);
      const y = drawable(ys, state.yscale, highest);
      const common = { x, type: "scatter", mode: "lines", legendgroup: `${i}` };
      const line = { color: colour, dash, width: 2 };
      const hovertemplate = `<b>${plain(series.label)}</b><br>${plain(title(state.x, view))}: %{customdata[0]}<br>`
        + `${plain(title(state.y, view))}: %{customdata[1]}%{customdata[2]}<extra></extra>`;
      const first = y.findIndex((v, k) => v !== null && x[k] !== null);
      if (state.xscale === "log" && xs[0] === 0 && y[0] !== null && first > 0) starts.push({ y: y[0], x: x[first], to: y[first], colour });
      const smooth = series.smooth?.[state.y];
      if (smooth?.x[state.x]) {
        traces.push({ ...common, y, mode: "markers", marker: { color: colour, size: 3, opacity: 0.2 }, hoverinfo: "skip", showlegend: false });
        const [low, high, middle] = noise(smooth, state, common, plain(series.label), colour, highest);
        traces.push(low, high, { ...middle, line, hovertemplate });
        return;
      }
      if (series.seeds > 1 && (series.low?.[state.y] || series.high?.[state.y])) {
        const floor = Math.min(...y.filter((v) => v !== null && v > 0));
        const clipped = (v) => (v !== null && state.yscale === "log" && !(v > 0) ? floor : v > highest ? highest : v);
        const band = { ...common, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
        traces.push({ ...band, y: end(series, state.y, "low").map(clipped) });
        traces.push({ ...band, y: end(series, state.y, "high").map(clipped), fill: "tonexty", fillcolor: translucent(colour) });
      }
      const spread = series.seeds > 1 && series.low?.[state.y]
        ? xs.map((_, k) => `<br>${series.low[state.y][k]} … ${series.high[state.y][k]} over ${series.seeds} seeds`) : xs.map(() => "");
      const every = Math.max(1, Math.floor(xs.length / MARKS));
      traces.push({
        ...common, y, name: plain(series.label), mode: "lines+markers", line,
        marker: { color: colour, symbol, size: xs.map((_, k) => (k % every === (3 * i) % every ? 7 : 0)), opacity: 1, line: { width: 0 } },
        customdata: xs.map((v, k) => [v, ys[k], spread[k]]), hovertemplate,
      });
      if (!bounds) return;
      for (const bound of view.bounds) {
        const values = numbers(series, bound);
        if (!values) continue;
        traces.push({
          ...common, y: drawable(values, state.yscale), name: plain(`${series.label}: ${title(bound, view)}`), line: { color: colour, dash: "dash", width: 1.2 },
          hovertemplate: `<b>${plain(series.label)}</b><br>${plain(title(bound, view))}: %{y}<extra></extra>`,
        });
      }
    });
    return [...traces, ...fromZero(starts, traces)];
  }

  // Where curves start, at x = 0, at the left edge of a logarithmic axis, which has no place for it.
  function fromZero(starts, traces) {
    if (!starts.length) return [];
    const ends = traces.flatMap((t) => t.x.filter((v, k) => v !== null && t.y[k] !== null));
    const [first, last] = [Math.min(...starts.map((s) => s.x)), ends.reduce((a, b) => Math.max(a, b), 0)];
    const edge = first / Math.max(last / first, 10) ** (ROOM / (1 - ROOM));
    const dotted = { type: "scatter", hoverinfo: "skip", showlegend: false, cliponaxis: false, atZero: { edge, first, last } };
    return [...new Map(starts.map((s) => [`${s.y} ${s.x} ${s.to}`, s])).values()].map(({ y, x, to, colour }) => ({
      ...dotted, x: [edge, x], y: [y, to], mode: "lines+markers", line: { color: colour, dash: "dot", width: 1 }, marker: { color: colour, size: [5, 0], opacity: 1 },
    }));
  }

  // What a view's legend lists: a grid's points are one line.
  const stems = (view) => [...new Set(view.series.map((s) => s.stem ?? s.label))];

  // One point a run: those of a grid on a line; a run whose x changes on its way, or that has none, is a level.
  function points(view, state) {
    const [traces, levels, groups] = [[], [], new Map()];
    view.series.forEach((series) => {
      const [x, y] = [series.columns[state.x], series.columns[state.y]];
      if (!state.shown[stems(view).indexOf(series.stem)] || y === null || y === undefined) return;
      if (x === null || x === undefined || series.varies.includes(state.x)) { levels.push({ stem: series.stem, y, label: series.label }); return; }
      if (!groups.has(series.stem)) groups.set(series.stem, []);
      groups.get(series.stem).push({ x, y, label: series.label });
    });
    for (const [stem, members] of groups) {
      members.sort((a, b) => a.x - b.x);
      const { colour, dash, symbol } = look(stems(view).indexOf(stem), false, stems(view));
      traces.push({
        x: members.map((m) => m.x), y: members.map((m) => m.y), type: "scatter", mode: "lines+markers", name: plain(stem),
        line: { color: colour, dash, width: 2 }, marker: { color: colour, symbol, size: 8 },
        customdata: members.map((m) => plain(m.label)),
        hovertemplate: `<b>%{customdata}</b><br>${plain(title(state.x, view))}: %{x}<br>${plain(title(state.y, view))}: %{y}<extra></extra>`,
      });
    }
    const xs = traces.flatMap((t) => t.x);
    const span = xs.length ? [Math.min(...xs), Math.max(...xs)] : [1, 10];
    for (const { stem, y, label } of levels) {
      const { colour, dash, symbol } = look(stems(view).indexOf(stem), false, stems(view));
      const x = state.xscale === "log" ? [span[0], Math.sqrt(span[0] * span[1]), span[1]] : [span[0], (span[0] + span[1]) / 2, span[1]];
      traces.push({
        x, y: [y, y, y], type: "scatter", mode: "lines+markers", name: plain(label), line: { color: colour, dash: dash === "solid" ? "dash" : dash, width: 2 },
        marker: { color: colour, symbol, size: [0, 8, 0] }, hovertemplate: `<b>${plain(label)}</b><br>${plain(title(state.y, view))}: %{y}<extra></extra>`,
      });
    }
    return traces;
  }

  // From the first point to the last; Plotly's own range would leave room for markers.
  function range(traces, scale) {
    const xs = traces.flatMap((t) => t.x.filter((v, k) => v !== null && t.y[k] !== null)).map((v) => (scale === "log" ? Math.log10(v) : v));
    const [least, most] = [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)];
    const pad = 0.02 * (most - least) || 0.5;
    return Number.isFinite(least) ? [least - pad, most + pad] : undefined;
  }

  // Ticks of an axis from 0 on: a 0 at its edge, then powers of ten from the first point on.
  function zeroTicks(traces, most) {
    const zero = traces.find((t) => t.atZero)?.atZero;
    if (!zero) return {};
    const [least, last] = [Math.ceil(Math.log10(zero.first)), Math.floor(Math.log10(zero.last))];
    const step = Math.max(1, Math.ceil((last - least + 1) / most));
    const powers = Array.from({ length: Math.max(0, Math.floor((last - least) / step) + 1) }, (_, k) => least + k * step);
    const values = powers.length > 1 ? powers : [Math.log10(zero.first), Math.log10(zero.last)];
    const text = powers.length > 1 ? powers.map((p) => `10<sup>${p}</sup>`) : [zero.first, zero.last].map((v) => v.toPrecision(2));
    return { tickmode: "array", tickvals: [zero.edge, ...values.map((p) => 10 ** p)], ticktext: ["0", ...text] };
  }

  // Large counts read 2M, small numbers as powers of ten.
  const format = (traces, which, scale) => (scale === "log" || !traces.some((t) => t[which].some((v) => Math.abs(v) >= 1e4)) ? "power" : "SI");

  function layout(traces, state, view, wide) {
    const ink = isDark() ? "#e8eaed" : "#1d2733";
    const grid = isDark() ? "#3a4350" : "#dfe4ea";
    const size = wide ? 13 : 11;
    const axis = (which, column, scale) => ({
      title: { text: plain(column === view[which] ? view[`${which}label`] ?? title(column, view) : title(column, view)), standoff: 10, font: { size } }, type: scale, gridcolor: grid, zeroline: false, linecolor: grid,
      ticks: "outside", tickcolor: grid, exponentformat: format(traces, which, scale), automargin: true, nticks: wide ? 8 : 5,
    });
    return {
      xaxis: { ...axis("x", state.x, state.xscale), range: range(traces, state.xscale), ...zeroTicks(traces, wide ? 8 : 5) }, yaxis: axis("y", state.y, state.yscale),
      showlegend: false, hovermode: "closest", dragmode: wide ? "zoom" : false,
      margin: { l: wide ? 64 : 48, r: 12, t: 12, b: 52 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size, color: ink },
      hoverlabel: { bgcolor: isDark() ? "#11161d" : "#ffffff", bordercolor: grid, font: { color: ink }, align: "left" },
    };
  }

  // ---- controls ----

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function select(id, label, options, value, changed) {
    const made = element("select", { id, onchange: () => changed(made.value) });
    for (const [key, text] of options) made.append(element("option", { value: key, textContent: text, selected: key === value }));
    return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: label }), made);
  }

  const SCALES = [["linear", "linear"], ["log", "logarithmic"]];

  function swatch(i, bounds, labels) {
    const { colour, dash } = look(i, bounds, labels);
    const pattern = { solid: "", dash: "6 3", dashdot: "6 3 2 3", dot: "2 3", longdash: "9 3", longdashdot: "9 3 2 3" }[dash];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 26 10");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [k, v] of Object.entries({ x1: 0, x2: 26, y1: 5, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": pattern })) line.setAttribute(k, v);
    svg.append(line);
    return svg;
  }

  class Explorer {
    constructor(place) {
      this.place = place;
      this.id = place.dataset.figure;
      this.views = figures[this.id].map((view, _, all) => view.source === undefined ? view
        : { ...view, series: view.of.map((i, k) => ({ ...all[view.source].series[i], label: view.labels[k], stem: all[view.source].series[i].stem })) });
      this.heading = document.getElementById(`${this.id}-h`).textContent.replace(/\s+/g, " ").trim();
      this.controls = element("div", { className: "controls" });
      this.graph = element("div", { className: "graph" });
      this.graph.setAttribute("role", "img");
      this.graph.setAttribute("aria-label", `${this.heading}: plot`);
      this.legend = element("fieldset", { className: "legend" });
      const png = element("button", { type: "button", textContent: "PNG", onclick: () => this.download() });
      png.setAttribute("aria-label", "Download this plot as PNG");
      const whole = element("button", { type: "button", textContent: "Whole range", onclick: () => this.draw() });
      const beside = element("div", { className: "beside" }, this.legend, element("div", { className: "buttons" }, whole, png));
      place.append(this.controls, element("div", { className: "plot" }, this.graph, beside));
      this.choose(0);
    }

    choose(number) {
      this.view = this.views[number];
      this.number = number;
      const { x, y, xscale, yscale } = this.view;
      this.state = { x, y, xscale, yscale, shown: stems(this.view).map(() => true) };
      this.build();
      this.draw();
    }

    build() {
      const used = new Set(this.view.series.flatMap((s) => Object.keys(s.columns)));
      const columns = Object.keys(names).filter((name) => used.has(name)).map((name) => [name, title(name, this.view)]);
      const set = (key) => (value) => { this.state[key] = value; this.list(); this.draw(); };
      this.controls.replaceChildren(
        ...(this.views.length > 1
          ? [select(`${this.id}-view`, "Show", this.views.map((v, i) => [`${i}`, v.title]), `${this.number}`, (v) => this.choose(Number(v)))] : []),
        select(`${this.id}-y`, "Vertical", columns, this.state.y, set("y")),
        select(`${this.id}-yscale`, "Vertical scale", SCALES, this.state.yscale, set("yscale")),
        select(`${this.id}-x`, "Horizontal", columns, this.state.x, set("x")),
        select(`${this.id}-xscale`, "Horizontal scale", SCALES, this.state.xscale, set("xscale")),
      );
      this.list();
    }

    list() {
      const bounds = withBounds(this.view, this.state);
      const seeds = (name) => this.view.series.find((s) => (s.stem ?? s.label) === name).seeds;
      const toggles = stems(this.view).map((name, i) => {
        const box = element("input", { type: "checkbox", checked: this.state.shown[i], onchange: () => { this.state.shown[i] = box.checked; this.draw(); } });
        return element("label", {}, box, swatch(i, bounds, stems(this.view)), element("span", { textContent: name + (seeds(name) > 1 ? ` (${seeds(name)} seeds)` : "") }));
      });
      const all = element("button", {
        type: "button", textContent: "All or none", onclick: () => {
          const on = !this.state.shown.every(Boolean);
          this.state.shown.fill(on);
          for (const box of this.legend.querySelectorAll("input")) box.checked = on;
          this.draw();
        },
      });
      const extra = bounds ? [element("p", { className: "small", textContent: `Thin, dashed: ${this.view.bounds.map((name) => title(name, this.view)).join(", ")}` })] : [];
      this.legend.replaceChildren(element("legend", { textContent: "Lines" }), ...toggles, ...(toggles.length > 3 ? [all] : []), ...extra);
    }

    get drawn() {
      return this.view.kind === "points" ? points(this.view, this.state) : lines(this.view, this.state);
    }

    draw() {
      if (!this.visible) return;
      const wide = window.matchMedia("(min-width: 40rem)").matches;
      const scale = (s) => (s === "log" ? ", logarithmic" : "");
      const shown = stems(this.view).filter((_, i) => this.state.shown[i]);
      this.graph.setAttribute("aria-label", `${this.heading}: plot of ${title(this.state.y, this.view)}${scale(this.state.yscale)} against `
        + `${title(this.state.x, this.view)}${scale(this.state.xscale)} of ${shown.length} lines: ${shown.slice(0, 12).join("; ")}. Final values are in the table below.`);
      const traces = this.drawn;
      return Plotly.react(this.graph, traces, layout(traces, this.state, this.view, wide), { displayModeBar: false, responsive: !printing });
    }

    show() {
      this.visible = true;
      return this.draw();
    }

    download() {
      const traces = this.drawn;
      const asked = { ...layout(traces, this.state, this.view, true), showlegend: true, paper_bgcolor: isDark() ? "#1a2029" : "#ffffff",
        title: { text: plain(this.heading), font: { size: 15 } }, margin: { l: 70, r: 20, t: 50, b: 60 } };
      return Plotly.downloadImage({ data: traces, layout: asked }, { format: "png", width: 900, height: 560, scale: 2, filename: this.id });
    }
  }

  const explorers = [...document.querySelectorAll(".explorer")].map((place) => new Explorer(place));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      seen.unobserve(entry.target);
      explorers.find((e) => e.place === entry.target).show();
    }
  }, { rootMargin: "400px" });
  for (const explorer of explorers) seen.observe(explorer.place);

  const again = () => explorers.forEach((e) => { e.build(); e.draw(); });
  dark.addEventListener("change", again);
  window.addEventListener("beforeprint", () => {
    printing = true;
    explorers.forEach((e) => { e.build(); e.show(); Plotly.relayout(e.graph, { width: 460, height: 340 }); });
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    explorers.forEach((e) => { e.build(); e.draw(); Plotly.relayout(e.graph, { width: null, height: null, autosize: true }); });
  });

  // ---- the scorecard's filter ----

  const filter = document.querySelector(".filter"); // there is none without claims
  if (filter) filter.hidden = false;
  filter?.addEventListener("change", () => {
    for (const box of filter.querySelectorAll("input")) {
      for (const row of document.querySelectorAll(`.claims tbody tr.${box.value}`)) row.hidden = !box.checked;
    }
  });
})();
