// Tables of what each method needed to reach a target: a slider chooses the target among levels that runs logged, and the table
// follows. Each cell, the order of the methods and the lengths of bars stand in #reached.
"use strict";

(() => {
  const tables = JSON.parse(document.getElementById("reached").textContent);

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
  const entry = (label, live, reached, ...content) =>
    element("td", { className: [live && "live", !reached && "missed"].filter(Boolean).join(" "), data: { label } }, ...content);

  class Table {
    constructor(place) {
      const id = place.dataset.table;
      Object.assign(this, tables[id]);
      this.across = "across" in place.dataset;
      [this.column, this.counted] = [0, 0];
      this.head = place.querySelector("thead tr");
      this.body = place.querySelector("tbody");
      this.caption = place.querySelector(".caption");
      this.words = this.caption.textContent.slice(this.by[0].length);
      this.slider = element("input", { type: "range", id: `${id}-level`, min: 0, step: 1, oninput: () => this.draw() });
      this.shown = element("output", { htmlFor: this.slider.id });
      const label = element("label", { htmlFor: this.slider.id, textContent: "Target" });
      const controls = place.querySelector(".controls");
      controls.onsubmit = () => false;
      controls.append(
        select(`${id}-of`, "Target of", this.columns.map((column) => column.label), (i) => { this.column = i; this.begin(); }),
        select(`${id}-by`, "Counted in", this.by, (i) => { this.counted = i; this.begin(); }),
        element("div", { className: "control level" }, label, element("div", { className: "track" }, this.slider, this.shown)),
      );
      controls.hidden = false;
      this.begin();
    }

    begin() {
      const { levels, views } = this.columns[this.column];
      this.slider.max = levels.length - 1;
      this.slider.value = views[this.counted].begin;
      this.draw();
    }

    draw() {
      const { levels, targets, views } = this.columns[this.column];
      const { cells, order, bars } = views[this.counted];
      const place = Number(this.slider.value);
      this.shown.textContent = levels[place];
      this.slider.setAttribute("aria-valuetext", levels[place]);
      this.caption.textContent = this.by[this.counted] + this.words;
      const head = (textContent, properties = {}) => element("th", { scope: "col", textContent, ...properties });
      this.head.replaceChildren(
        head("Method"), ...(this.across ? [head("Job")] : []), head(levels[place], { className: "live" }), ...targets.map((target) => head(target)),
      );
      this.body.replaceChildren(...order[place].map((i) => {
        const [text, long] = [(k) => this.texts[cells[i][k]], bars[i][place]];
        const bar = element("span", { className: "meter" }, element("span"));
        bar.setAttribute("aria-hidden", "true");
        bar.firstChild.style.width = `${long}%`;
        return element("tr", {}, element("th", { scope: "row", textContent: this.methods[i].name }),
          ...(this.across ? [element("td", { textContent: this.methods[i].job, data: { label: "Job" } })] : []),
          entry(levels[place], true, long > 0, element("span", {}, text(place), ...(long > 0 ? [bar] : []))),
          ...targets.map((target, k) => entry(target, false, bars[i][levels.length + k] > 0, text(levels.length + k))));
      }));
    }
  }

  for (const place of document.querySelectorAll(".reach")) new Table(place);
})();
