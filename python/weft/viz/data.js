// What the page knows: a summary, and traces that are unpacked when somebody looks at them.

weft.data = JSON.parse(document.getElementById("weft-data").textContent);

// A blob by name: gzip in base64 in a script element that runs nothing.
weft.blobs = new Map();
weft.blob = function (name) {
  if (!weft.blobs.has(name)) weft.blobs.set(name, unpack(name));
  return weft.blobs.get(name);

  async function unpack(of) {
    const element = document.querySelector(`script[data-blob="${CSS.escape(of)}"]`);
    if (!element) return null;
    const bytes = Uint8Array.from(atob(element.textContent.trim()), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
};

// ---- graphs: nodes are [op, dtype, [sources], argument, [sites]], by number

// The nodes that a root needs, sources first.
weft.reachable = function (nodes, root) {
  const out = [], state = new Map(), stack = [[root, 0]];
  state.set(root, 1);
  while (stack.length) {
    const top = stack[stack.length - 1];
    const sources = nodes[top[0]][2];
    if (top[1] < sources.length) {
      const s = sources[top[1]++];
      if (!state.has(s)) {
        state.set(s, 1);
        stack.push([s, 0]);
      }
    } else {
      out.push(top[0]);
      stack.pop();
    }
  }
  return out;
};

// A trace whose graphs can be seen after any number of steps of a pass.
weft.Replay = class {
  constructor(trace) {
    this.trace = trace;
    this.nodes = trace.nodes.slice();  // those of half-done graphs are added
    this.numbers = null;
  }

  // The root after the first `count` steps. Steps name nodes whose sources have been rewritten already.
  after(pass, count) {
    if (count <= 0 || pass.before === null) return pass.before;
    const map = new Map();
    for (const [, before, after] of pass.steps.slice(0, count)) map.set(before, after);
    const done = new Map(), doing = new Set(), stack = [pass.before];
    while (stack.length) {
      const n = stack[stack.length - 1];
      if (done.has(n)) { stack.pop(); continue; }
      const [op, dtype, sources, argument, sites] = this.nodes[n];
      if (!doing.has(n)) {
        doing.add(n);
        const waiting = sources.filter(s => !done.has(s) && !doing.has(s));
        if (waiting.length) { stack.push(...waiting); continue; }
      }
      const own = this.number(op, dtype, sources.map(s => done.get(s) ?? s), argument, sites);
      let next = own;
      if (map.has(own) && map.get(own) !== own) next = map.get(own);
      if (next !== own && !done.has(next) && !doing.has(next)) { stack.push(next); continue; }
      done.set(n, next === own ? own : done.get(next) ?? next);
      stack.pop();
    }
    return done.get(pass.before);
  }

  number(op, dtype, sources, argument, sites) {
    const key = (n) => `${n[0]}|${n[1]}|${n[2].join()}|${n[3]}`;
    if (this.numbers === null) this.numbers = new Map(this.nodes.map((n, i) => [key(n), i]));
    const node = [op, dtype, sources, argument, sites];
    const k = key(node);
    if (!this.numbers.has(k)) {
      this.numbers.set(k, this.nodes.length);
      this.nodes.push(node);
    }
    return this.numbers.get(k);
  }
};

// A graph as weft prints it: a line per node.
weft.printed = function (nodes, root) {
  const order = weft.reachable(nodes, root), number = new Map(order.map((n, i) => [n, i]));
  return order.map((n, i) => {
    const [op, dtype, sources, argument] = nodes[n];
    const list = sources.length ? ` (${sources.map(s => "%" + number.get(s)).join(", ")})` : "";
    return `%${i} = ${op} ${dtype}${list}${argument ? " " + argument : ""}`;
  });
};

// ---- lines of the program

weft.placeOf = function (site) {
  const [file, line] = weft.data.sites[site];
  const f = weft.data.files[file];
  return f.is_script ? `line ${line}` : `${f.name}:${line}`;
};
weft.lineKey = site => weft.data.sites[site].join(":");

// Kernels by "file:line", and what was decided there.
weft.byLine = new Map();
for (const kernel of weft.data.kernels) {
  for (const site of kernel.sites) {
    const key = weft.lineKey(site);
    if (!weft.byLine.has(key)) weft.byLine.set(key, []);
    if (!weft.byLine.get(key).includes(kernel.number)) weft.byLine.get(key).push(kernel.number);
  }
}
