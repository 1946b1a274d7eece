// Elements, numbers and what is said aloud. Text of the program is only ever set as text: a name that is HTML stays a name.

weft.el = function (tag, attributes = {}, ...children) {
  const svg = weft.svgTags.has(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : value);
  }
  weft.add(e, children);
  return e;
};
weft.svgTags = new Set(["svg", "g", "rect", "path", "text", "tspan", "line", "circle", "defs", "marker", "title"]);

weft.add = function (parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
};

weft.clear = function (e, ...children) {
  e.replaceChildren();
  weft.add(e, children);
  return e;
};

weft.say = function (text) {
  document.getElementById("said").textContent = text;
};

// A button that looks like one and says what it does.
weft.button = function (text, onclick, attributes = {}) {
  return weft.el("button", { type: "button", onclick, ...attributes }, text);
};

// Rows of cells under heads; a head that starts with "#" is one of numbers. Rows may have `onclick`.
weft.table = function (heads, rows, caption) {
  const isNumber = heads.map(h => h.startsWith("#"));
  const cell = (tag, value, i) => weft.el(tag, { class: isNumber[i] ? "n" : null,
    scope: tag === "th" ? "col" : null }, value);
  return weft.el("table", { "aria-label": caption },
    weft.el("thead", {}, weft.el("tr", {}, heads.map((h, i) => cell("th", h.replace(/^#/, ""), i)))),
    weft.el("tbody", {}, rows.map(row => {
      const go = row.onclick;
      const attributes = go ? { class: "link", tabindex: 0, onclick: go,
        onkeydown: e => { if (e.key === "Enter") go(); }, "aria-selected": row.chosen ? "true" : null } : {};
      return weft.el("tr", { ...attributes, ...row.attributes }, row.cells.map((c, i) => cell("td", c, i)));
    })));
};

// ---- numbers

weft.time = function (ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
  return ns < 1e9 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e9).toFixed(2)} s`;
};

weft.bytes = function (n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (Math.abs(n) >= 1000 && i < units.length - 1) { n /= 1000; i++; }
  return `${i === 0 ? n : n.toFixed(1)} ${units[i]}`;
};

weft.number = x => Number.isInteger(x) ? String(x) : Number(x).toPrecision(6).replace(/\.?0+($|e)/, "$1");
weft.count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
