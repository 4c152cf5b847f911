// Tables of what each method needed to reach a target: a slider chooses the target among levels that runs logged, and the table
// follows. Numbers are worked out and written as `mpi-compress table` does it.
"use strict";

(() => {
  const { runs, tables } = JSON.parse(document.getElementById("reached").textContent);

  // ---- numbers as the command writes them ----

  // Rounded to n digits; what lies exactly between two goes to the even one.
  function rounded(value, n) {
    const [digits, power] = value.toExponential(60).replace("-", "").replace(".", "").split(/e/);
    const tie = /^50*$/.test(digits.slice(n)) && Number(digits[n - 1]) % 2 === 0;
    const kept = tie ? Number(`${digits.slice(0, n)}e${Number(power) - n + 1}`) * Math.sign(value) : value;
    return kept.toExponential(n - 1);
  }

  // C's %.4g.
  function short(value) {
    if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : String(value).replace("Infinity", "inf").replace("NaN", "nan");
    const [digits, power] = rounded(value, 4).split("e");
    if (power >= -4 && power < 4) return String(Number(`${digits}e${power}`));
    return `${Number(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }

  function bits(value) {
    for (const unit of ["bit", "kbit", "Mbit", "Gbit"]) {
      if (value < 1000) return `${short(value)} ${unit}`;
      value /= 1000;
    }
    return `${short(value)} Tbit`;
  }

  function amount(value, by) {
    if (by.unit === "bit") return bits(value);
    if (by.whole) return value.toLocaleString("en-US", { maximumFractionDigits: 0, roundingMode: "halfEven" });
    return short(value) + (by.unit ? ` ${by.unit}` : "");
  }

  function level(value) {
    const text = Number(value.toPrecision(6));
    const [digits, power] = text.toExponential().split("e");
    if (text === 0 || (power >= -4 && power < 6)) return String(text);
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }

  const target = (column, value) => `${column.name} ${column.rising ? "≥" : "≤"} ${level(value)}`;

  function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  // ---- one cell ----

  // How runs ended that do not reach a target.
  function end(those, column) {
    const diverged = those.filter((run) => run.status === "diverged");
    if (diverged.length === those.length) return `diverged in round ${diverged[0].round}`;
    const last = those.some((run) => run.ends[column.name] === null) ? NaN : median(those.map((run) => run.ends[column.name]));
    const whole = those.every((run) => run.status === "complete" || run.status === "diverged");
    const state = whole ? "at the end" : `so far, ${those[those.length - 1].status}`;
    return `${short(last)} ${state}${diverged.length ? `, ${diverged.length} diverged` : ""}`;
  }

  // What the runs of a method took to the level of this place: the median, Infinity where it is not reached, and the text.
  function cell(numbers, column, place, by) {
    const those = numbers.map((i) => runs[i]);
    const missing = those.some((run) => !(column.name in run.ends)) ? column.name : those.some((run) => !(by.name in run.by)) ? by.name : null;
    if (missing !== null) return { value: Infinity, text: `has no ${missing}` };
    if (those.every((run) => run.unknown.includes(column.name))) return { value: Infinity, text: column.unknown };
    const took = numbers.map((i, k) => {
      const row = column.at[i][place];
      return row === null ? Infinity : those[k].by[by.name][row];
    });
    const reached = took.filter((value) => value < Infinity);
    const value = median(took);
    const late = () => end(those.filter((_, k) => took[k] === Infinity), column);
    if (!reached.length) return { value, text: `not reached (${late()})` };
    const [least, most] = [amount(Math.min(...reached), by), amount(Math.max(...reached), by)];
    if (reached.length === took.length) return { value, text: amount(value, by) + (least === most ? "" : ` (${least} … ${most})`) };
    const middle = value < Infinity ? `median ${amount(value, by)}, ` : "";
    const range = least === most ? least : `${least} … ${most}`;
    const missed = took.length - reached.length;
    return { value, text: `${middle}${range} with ${reached.length} of ${took.length} seeds; not reached with ${missed} (${late()})` };
  }

  // ---- one table ----

  function element(tag, properties = {}, ...children) {
    const { data, ...own } = properties;
    const made = Object.assign(document.createElement(tag), own);
    Object.assign(made.dataset, data);
    made.append(...children);
    return made;
  }

  function select(id, label, options, changed) {
    const made = element("select", { id, onchange: () => changed(made.selectedIndex) });
    for (const text of options) made.append(element("option", { textContent: text }));
    return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: label }), made);
  }

  // The cell of a row; one whose target is not reached is faint.
  const entry = (found, label, live, content) =>
    element("td", { className: [live && "live", found.value === Infinity && "missed"].filter(Boolean).join(" "), data: { label } }, content);

  class Table {
    constructor(place) {
      this.id = place.dataset.table;
      Object.assign(this, tables[this.id]);
      this.across = "across" in place.dataset;
      [this.column, this.counted] = [this.columns[0], this.by[0]];
      this.head = place.querySelector("thead tr");
      this.body = place.querySelector("tbody");
      this.caption = place.querySelector(".caption");
      this.words = this.caption.textContent.slice(this.counted.label.length);
      this.slider = element("input", { type: "range", id: `${this.id}-level`, min: 0, step: 1, oninput: () => this.draw() });
      this.shown = element("output", { htmlFor: this.slider.id });
      const label = element("label", { htmlFor: this.slider.id, textContent: "Target" });
      const controls = place.querySelector(".controls");
      controls.onsubmit = () => false;
      controls.append(
        select(`${this.id}-of`, "Target of", this.columns.map((c) => c.label), (i) => { this.column = this.columns[i]; this.begin(); }),
        select(`${this.id}-by`, "Counted in", this.by.map((b) => b.label), (i) => { this.counted = this.by[i]; this.begin(); }),
        element("div", { className: "control level" }, label, element("div", { className: "track" }, this.slider, this.shown)),
      );
      controls.hidden = false;
      this.begin();
    }

    // The hardest level that half of the methods reach which reach any below the start; without such, the middle.
    begin() {
      const { levels } = this.column;
      const last = this.methods.map((m) => levels.findLastIndex((_, k) => cell(m.runs, this.column, k, this.counted).value < Infinity));
      const able = last.filter((k) => k > 0);
      this.slider.max = levels.length - 1;
      this.slider.value = able.length ? able.sort((a, b) => a - b)[able.length >> 1] : levels.length >> 1;
      this.draw();
    }

    draw() {
      const { column, counted } = this;
      const place = Number(this.slider.value);
      const text = target(column, column.levels[place]);
      this.shown.textContent = text;
      this.slider.setAttribute("aria-valuetext", text);
      this.caption.textContent = counted.label + this.words;
      const fixed = column.targets.map((value, k) => [target(column, value), column.levels.length + k]);
      const heads = ["Method", ...(this.across ? ["Job"] : [])].map((name) => element("th", { scope: "col", textContent: name }));
      this.head.replaceChildren(
        ...heads, element("th", { scope: "col", className: "live" }, text),
        ...fixed.map(([name]) => element("th", { scope: "col", textContent: name })),
      );
      const rows = this.methods.map((method) => ({ method, now: cell(method.runs, column, place, counted) }));
      const most = Math.max(...rows.map(({ now }) => now.value).filter((value) => value < Infinity), 0);
      rows.sort((a, b) => (a.now.value === b.now.value ? 0 : a.now.value - b.now.value));
      this.body.replaceChildren(...rows.map(({ method, now }) => {
        const bar = element("span", { className: "meter" }, element("span"));
        bar.setAttribute("aria-hidden", "true");
        bar.firstChild.style.width = `${Math.max((100 * now.value) / most || 0, 0.5)}%`;
        return element("tr", {}, element("th", { scope: "row", textContent: method.name }),
          ...(this.across ? [element("td", { textContent: method.job, data: { label: "Job" } })] : []),
          entry(now, text, true, element("span", {}, now.text, ...(now.value < Infinity ? [bar] : []))),
          ...fixed.map(([name, k]) => { const found = cell(method.runs, column, k, counted); return entry(found, name, false, found.text); }));
      }));
    }
  }

  for (const place of document.querySelectorAll(".reach")) new Table(place);
})();
