// Plays slider.js on the JSON of standard input, with as much of a document as it needs, and prints a table's rows at each level.
"use strict";

class Element {
  constructor(tag) { Object.assign(this, { tag, children: [], dataset: {}, style: {}, attributes: {} }); }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  setAttribute(name, value) { this.attributes[name] = value; }
  get firstChild() { return this.children[0]; }
  get text() { return this.textContent ?? this.children.map((child) => (typeof child === "string" ? child : child.text)).join(""); }
}

const { script, tables } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const [id, { by }] = Object.entries(tables)[0];
const parts = { "thead tr": new Element("tr"), tbody: new Element("tbody"), ".caption": new Element("p"), ".controls": new Element("form") };
parts[".caption"].textContent = `${by[0]}; of seeds`;
const place = Object.assign(new Element("div"), { querySelector: (name) => parts[name] });
place.dataset = { table: id };
const reached = { textContent: JSON.stringify(tables) };
global.document = { getElementById: () => reached, createElement: (tag) => new Element(tag), querySelectorAll: () => [place] };
new Function(script)();

const [columns, counted, moving] = parts[".controls"].children;
const [select, other] = [columns, counted].map((control) => control.children[1]);
const slider = moving.children[1].children[0];
const seen = [];
for (let i = 0; i < select.children.length; i += 1) {
  select.selectedIndex = i;
  select.onchange();
  for (let j = 0; j < other.children.length; j += 1) {
    other.selectedIndex = j;
    other.onchange();
    const begin = slider.value;
    for (let k = 0; k <= slider.max; k += 1) {
      slider.value = k;
      slider.oninput();
      const heads = parts["thead tr"].children.map((cell) => cell.text);
      seen.push({ column: i, by: j, begin, heads, caption: parts[".caption"].text, rows: parts.tbody.children.map((row) => row.children.map((cell) => cell.text)) });
    }
  }
}
console.log(JSON.stringify(seen));
