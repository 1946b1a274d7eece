// One graph on the screen: drawn, zoomed, searched, walked by keys, and of a large one only a neighbourhood.

weft.kinds = {
  memory: ["BUFFER", "DEFINE_GLOBAL", "DEFINE_LOCAL", "DEFINE_REG", "LOAD", "STORE", "INDEX", "BUFFERIZE", "CONTIGUOUS", "COPY"],
  move: ["RESHAPE", "EXPAND", "PERMUTE", "PAD", "SHRINK", "FLIP", "VIEW", "CAT", "STACK", "GEP"],
  reduce: ["REDUCE", "REDUCE_AXIS", "SCAN", "MMA", "WMMA"],
  control: ["SINK", "AFTER", "END", "RANGE", "KERNEL", "LINEAR", "BARRIER", "IF", "ENDIF", "CALL"],
  leaf: ["CONST", "DEVICE", "VARIABLE", "BIND", "IOTA"],
};
weft.kindOf = new Map(Object.entries(weft.kinds).flatMap(([kind, ops]) => ops.map(op => [op, kind])));

weft.GraphView = class {
  constructor(mostShown = 220) {
    this.mostShown = mostShown;  // of a larger graph, as many around the middle of interest
    this.hidesLeaves = true;
    this.zoom = { x: 0, y: 0, k: 1 };
    this.svg = weft.el("svg", { class: "graph", role: "application", tabindex: 0,
      "aria-label": "Graph. Arrow keys walk from node to node." });
    this.layer = weft.el("g");
    this.svg.append(this.layer);
    this.note = weft.el("span", { class: "soft", role: "status" });
    this.onchosen = () => {};
    this.isFitted = true;  // until somebody zooms
    this.listen();
    new ResizeObserver(() => { if (this.isFitted && this.size) this.fit(); }).observe(this.svg);
  }

  // `marks`: {fresh, old: Sets of nodes}; `focus`: a node to be in the middle.
  show(nodes, root, { marks = {}, focus = null } = {}) {
    this.nodes = nodes;
    this.root = root;
    this.marks = marks;
    this.order = root === null ? [] : weft.reachable(nodes, root);
    this.users = new Map(this.order.map(n => [n, []]));
    for (const n of this.order) for (const s of nodes[n][2]) this.users.get(s).push(n);
    const known = new Set(this.order);
    this.extra = new Set();
    const middle = known.has(focus) ? focus : known.has(this.chosen) ? this.chosen : root;
    this.chosen = middle;
    this.focus = known.has(focus) ? focus : null;  // what is asked for is to be read, the whole may be small
    this.draw(middle, true);
  }

  isLeaf(n) {
    return this.hidesLeaves && n !== this.root && ["CONST", "DEVICE"].includes(this.nodes[n][0]);
  }

  // Some of what a node reads and of who reads it: of a node with thousands of users, the last ones.
  around(n, most) {
    const sources = this.nodes[n][2].filter(s => !this.isLeaf(s)), users = this.users.get(n);
    return [...sources.slice(0, most), ...users.slice(-most)];
  }

  // The nodes shown: all of them, or those nearest to the middle, and what was asked for.
  shown(middle) {
    const visible = this.order.filter(n => !this.isLeaf(n));
    if (visible.length <= this.mostShown) return new Set(visible);
    const out = new Set([middle]), queue = [middle];
    for (let i = 0; i < queue.length && out.size < this.mostShown; i++) {
      for (const n of this.around(queue[i], 10)) {
        if (out.size >= this.mostShown) break;
        if (!out.has(n)) {
          out.add(n);
          queue.push(n);
        }
      }
    }
    for (const n of this.extra) if (this.users.has(n)) out.add(n);
    return out;
  }

  draw(middle, fits = false) {
    if (this.root === null) {
      weft.clear(this.layer);
      this.note.textContent = "This graph is too large to be in the page.";
      return;
    }
    const shown = this.shown(middle);
    const ids = this.order.filter(n => shown.has(n));
    const index = new Map(ids.map((n, i) => [n, i]));
    const boxes = ids.map(n => {
      const lines = this.label(n);
      return { id: n, lines, width: 14 + 6.7 * Math.max(...lines.map(l => l.length)), height: 6 + 14 * lines.length };
    });
    const edges = [];
    for (const n of ids) {
      for (const s of new Set(this.nodes[n][2])) if (index.has(s)) edges.push([index.get(s), index.get(n)]);
    }
    edges.sort((a, b) => a[1] - b[1]);
    const size = weft.layout(boxes, edges);
    this.boxes = new Map(boxes.map(b => [b.id, b]));
    this.edges = edges.map(([a, b], i) => {
      const path = weft.el("path", { class: "edge", d: curve(size.points[i]) });
      return { from: ids[a], to: ids[b], path };
    });
    this.size = size;
    this.elements = new Map();
    weft.clear(this.layer, this.edges.map(e => e.path), boxes.map(b => this.node(b, shown)));
    const all = this.order.length, leaves = this.order.filter(n => this.isLeaf(n)).length;
    this.note.textContent = ids.length + leaves < all
      ? `${ids.length} of ${all} nodes, around one: a number on a node opens what it hides`
      : `${weft.count(all, "node")}${leaves ? `, ${leaves} of them constants in labels` : ""}`;
    if (fits) this.fit();
    this.choose(this.elements.has(this.chosen) ? this.chosen : middle, false);

    function curve(points) {
      let d = `M${points[0]}`;
      for (let i = 1; i < points.length; i++) {
        const [x0, y0] = points[i - 1], [x1, y1] = points[i], y = (y0 + y1) / 2;
        d += `C${x0},${y} ${x1},${y} ${x1},${y1}`;
      }
      return d;
    }
  }

  // "ADD", what it is told, its constant sources, its type.
  label(n) {
    const [op, dtype, sources, argument] = this.nodes[n];
    const cut = text => text.length > 34 ? text.slice(0, 33) + "…" : text;
    const constants = sources.filter(s => this.isLeaf(s) && this.nodes[s][0] === "CONST").map(s => this.nodes[s][3]);
    const lines = [cut(argument ? `${op} ${argument}` : op)];
    if (constants.length) lines.push(cut(`with ${constants.join(", ")}`));
    if (dtype !== "void") lines.push(dtype);
    return lines;
  }

  node(b, shown) {
    const { id, lines } = b;
    const hidden = [...this.nodes[id][2], ...this.users.get(id)].filter(n => !shown.has(n) && !this.isLeaf(n)).length;
    const classes = ["node"];
    if (this.marks.fresh?.has(id)) classes.push("new");
    if (this.marks.old?.has(id)) classes.push("old");
    const kind = weft.kindOf.get(this.nodes[id][0]) ?? "alu";
    const g = weft.el("g", { class: classes.join(" "), tabindex: -1, "data-node": id, role: "img",
      "aria-label": this.described(id), transform: `translate(${b.x - b.width / 2},${b.y - b.height / 2})`,
      onclick: () => this.choose(id, true), ondblclick: () => this.expand(id) },
      weft.el("rect", { class: kind, width: b.width, height: b.height, rx: 4 }),
      lines.map((l, i) => weft.el("text", { x: 7, y: 14 + 14 * i }, l)),
      hidden ? weft.el("text", { class: "more", x: b.width - 2, y: -2, "text-anchor": "end",
        onclick: e => { e.stopPropagation(); this.expand(id); } }, `+${hidden}`) : null);
    this.elements.set(id, g);
    return g;
  }

  described(n) {
    const [op, dtype, sources, argument] = this.nodes[n];
    const names = sources.slice(0, 4).map(s => `${this.nodes[s][0]} ${this.nodes[s][3]}`.trim());
    const more = sources.length > 4 ? ` and ${sources.length - 4} more` : "";
    return `${op} ${argument} ${dtype}${names.length ? ` of ${names.join(", ")}${more}` : ""}, ` +
      weft.count(this.users.get(n).length, "user");
  }

  // Shows what a node reads and who reads it.
  expand(n) {
    this.extra.add(n);
    for (const other of this.around(n, 40)) this.extra.add(other);
    this.chosen = n;
    this.draw(this.middle ?? n);
    this.center(n);
  }

  choose(n, isTold) {
    this.elements.get(this.chosen)?.classList.remove("chosen");
    this.chosen = n;
    const element = this.elements.get(n);
    if (!element) return;
    element.classList.add("chosen");
    for (const e of this.edges) e.path.classList.toggle("lit", e.from === n || e.to === n);
    if (isTold) {
      weft.say(this.described(n));
      this.onchosen(n);
    }
  }

  // Goes to a node, wherever it is in the graph.
  goto(n) {
    if (!this.users.has(n)) return false;
    if (!this.elements.has(n)) {
      this.extra = new Set();
      this.draw(n);
    }
    this.choose(n, true);
    this.center(n);
    return true;
  }

  // Nodes whose op, argument or type has the text; goes to the next one.
  search(text) {
    const wanted = text.toLowerCase();
    this.found = text === "" ? [] : this.order.filter(n => {
      const [op, dtype, , argument] = this.nodes[n];
      return `${op} ${argument} ${dtype}`.toLowerCase().includes(wanted);
    });
    for (const [n, g] of this.elements) g.classList.toggle("found", this.found.includes(n));
    if (!this.found.length) return text === "" ? "" : "not found";
    const at = this.found.indexOf(this.chosen);
    const next = this.found[(at + 1) % this.found.length];
    this.goto(next);
    for (const n of this.found) this.elements.get(n)?.classList.add("found");
    return `${(at + 1) % this.found.length + 1} of ${this.found.length}`;
  }

  // ---- zoom

  apply() {
    const { x, y, k } = this.zoom;
    this.layer.setAttribute("transform", `translate(${x},${y}) scale(${k})`);
  }
  box() {
    const r = this.svg.getBoundingClientRect();
    return { width: r.width || 800, height: r.height || 500, left: r.left, top: r.top };
  }
  fit() {
    const { width, height } = this.box();
    const whole = Math.min(width / this.size.width, height / this.size.height);
    const readable = this.focus === null ? .3 : .7;
    if (whole < readable && this.boxes.has(this.chosen)) {
      this.zoom.k = .7;
      this.center(this.chosen);
      const { k, y } = this.zoom;  // no empty half above the first or below the last
      this.zoom.y = Math.min(10, Math.max(y, height - k * this.size.height));
      this.isFitted = true;
      this.apply();
      return;
    }
    const k = Math.min(1.2, whole);
    this.zoom = { k, x: (width - k * this.size.width) / 2, y: Math.max(0, (height - k * this.size.height) / 2) };
    this.isFitted = true;
    this.apply();
  }
  center(n) {
    const { width, height } = this.box(), b = this.boxes.get(n), k = Math.max(this.zoom.k, .7);
    this.isFitted = false;
    this.zoom = { k, x: width / 2 - k * b.x, y: height / 2 - k * b.y };
    this.apply();
  }
  scale(factor, px, py) {
    const { width, height } = this.box(), z = this.zoom;
    this.isFitted = false;
    const x = px ?? width / 2, y = py ?? height / 2, k = Math.min(4, Math.max(.05, z.k * factor));
    this.zoom = { k, x: x - (x - z.x) * k / z.k, y: y - (y - z.y) * k / z.k };
    this.apply();
  }

  listen() {
    const svg = this.svg;
    svg.addEventListener("wheel", e => {
      e.preventDefault();
      const { left, top } = this.box();
      this.scale(e.deltaY < 0 ? 1.15 : 1 / 1.15, e.clientX - left, e.clientY - top);
    }, { passive: false });
    let from = null;
    svg.addEventListener("pointerdown", e => { from = [e.clientX - this.zoom.x, e.clientY - this.zoom.y]; });
    svg.addEventListener("pointermove", e => {
      if (from === null || e.buttons === 0) return;
      this.isFitted = false;
      this.zoom.x = e.clientX - from[0];
      this.zoom.y = e.clientY - from[1];
      this.apply();
    });
    svg.addEventListener("pointerup", () => { from = null; });
    svg.addEventListener("keydown", e => {
      const near = {
        ArrowUp: () => this.nodes[this.chosen][2].filter(s => !this.isLeaf(s))[0],
        ArrowDown: () => this.users.get(this.chosen)[0],
        ArrowLeft: () => this.beside(-1),
        ArrowRight: () => this.beside(1),
      }[e.key];
      if (near) {
        const n = near();
        if (n !== undefined) this.goto(n);
      } else if (e.key === "Enter") this.expand(this.chosen);
      else if (e.key === "+" || e.key === "=") this.scale(1.25);
      else if (e.key === "-") this.scale(.8);
      else if (e.key === "0") this.fit();
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }

  // The node to the left or right in the same layer.
  beside(step) {
    const own = this.boxes.get(this.chosen);
    const row = [...this.boxes.values()].filter(b => b.y === own.y).sort((a, b) => a.x - b.x);
    return row[row.indexOf(own) + step]?.id;
  }
};
