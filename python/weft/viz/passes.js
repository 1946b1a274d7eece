// Graphs pass by pass, and step by step within a pass.

weft.views.graph = function () {
  const names = [...weft.data.schedules.filter(s => s.passes.length).map(s => [`s${s.number}`, `schedule ${s.number}`]),
    ...weft.data.kernels.filter((k, i, all) => k.blob && all.findIndex(o => o.blob === k.blob) === i)
      .map(k => [k.blob, `kernel ${k.number}: ${k.name}`])];
  if (!names.length) return weft.el("p", {}, "No graph is in the page.");
  const chosen = weft.state.graph && names.some(([n]) => n === weft.state.graph) ? weft.state.graph : names[0][0];
  weft.state.graph = chosen;
  const select = weft.el("select", { "aria-label": "Which graph", id: "which",
    onchange: () => weft.go("graph", select.value) },
    names.map(([value, text]) => weft.el("option", { value, selected: value === chosen }, text)));
  const body = weft.el("div", { class: "graphs" }, weft.el("p", { class: "soft" }, "unpacking …"));
  weft.blob(chosen).then(blob => {
    if (!blob) return weft.clear(body, weft.el("p", { class: "soft" }, "This graph is not in the page."));
    weft.clear(body, new weft.PassView(blob.trace ?? blob, chosen).elements());
  });
  const key = Object.keys(weft.kinds).slice(0, 4).concat("alu", "leaf").map(kind => [
    weft.el("span", { class: `key ${kind}`, "aria-hidden": "true" }),
    { memory: "memory", move: "movement", reduce: "reduction", control: "loops and order", alu: "arithmetic",
      leaf: "constants" }[kind]]);
  return [weft.el("div", { class: "row" }, select, weft.el("span", { class: "soft" }, key,
    weft.el("span", { class: "key", style: "border:2px solid var(--good)" }), "new ",
    weft.el("span", { class: "key", style: "border:2px dashed var(--bad)" }), "to go")), body];
};

weft.PassView = class {
  constructor(trace, name) {
    this.trace = trace;
    this.name = name;
    this.replay = new weft.Replay(trace);
    this.pass = Math.min(weft.state.pass ?? 0, trace.passes.length - 1);
    this.step = null;  // null: the graph after the pass
    this.view = new weft.GraphView();
    this.view.onchosen = n => this.tell(n);
    weft.state.passView = this;
  }

  elements() {
    this.list = weft.el("ul", {});
    this.title = weft.el("h2", { id: "pass-name" });
    this.slider = weft.el("input", { type: "range", min: 0, class: "grow", "aria-label": "Step", id: "step",
      oninput: () => this.goStep(Number(this.slider.value)) });
    this.stepText = weft.el("span", { class: "soft", id: "step-text" });
    this.stepsList = weft.el("ul", {});
    this.info = weft.el("div", { class: "soft", id: "node-info" });
    this.hits = weft.el("span", { class: "soft" });
    this.searchBox = weft.el("input", { type: "search", placeholder: "search nodes (/)", id: "search",
      "aria-label": "Search nodes", onkeydown: e => {
        if (e.key === "Enter") this.hits.textContent = this.view.search(this.searchBox.value);
      } });
    this.leaves = weft.button("constants", () => {
      this.view.hidesLeaves = !this.view.hidesLeaves;
      this.leaves.setAttribute("aria-pressed", String(!this.view.hidesLeaves));
      this.view.draw(this.view.chosen);
    }, { "aria-pressed": "false", title: "Constants as nodes of their own" });
    this.text = weft.el("details", {}, weft.el("summary", {}, "The graph as text"));
    this.text.addEventListener("toggle", () => this.fillText());
    this.notes = weft.el("div", {});
    queueMicrotask(() => this.showPass(this.pass, weft.state.step));
    return [
      weft.el("nav", { class: "passes", "aria-label": "Passes" }, this.list),
      weft.el("div", { class: "canvas" },
        weft.el("div", { class: "row" }, this.title,
          weft.button("|◀", () => this.goStep(0), { title: "before the pass", "aria-label": "before the pass", id: "first" }),
          weft.button("◀ step", () => this.move(-1), { id: "back", title: "a step back (p)" }),
          weft.button("step ▶", () => this.move(1), { id: "forward", title: "a step forward (n)" }),
          weft.button("▶|", () => this.goStep(null), { title: "after the pass", "aria-label": "after the pass", id: "last" }),
          this.slider),
        weft.el("div", { class: "row" }, this.stepText),
        weft.el("div", { class: "row" }, this.searchBox, this.hits, this.leaves,
          weft.button("+", () => this.view.scale(1.25), { "aria-label": "larger" }),
          weft.button("−", () => this.view.scale(.8), { "aria-label": "smaller" }),
          weft.button("fit", () => this.view.fit()), this.view.note),
        this.view.svg, this.info, weft.el("div", { class: "steps" }, this.stepsList), this.notes, this.text),
    ];
  }

  showPass(number, step = null) {
    this.pass = weft.state.pass = number;
    const pass = this.trace.passes[number];
    if (!pass) return;
    weft.clear(this.list, this.trace.passes.map((p, i) => weft.el("li",
      { "aria-current": i === number ? "true" : null, class: p.before === p.after ? "same" : null },
      weft.button([p.name, weft.el("span", { class: "soft" },
        p.step_count ? `${p.step_count} · ${weft.time(p.nanoseconds)}` : weft.time(p.nanoseconds))],
        () => this.showPass(i), { "data-pass": p.name }))));
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    this.title.textContent = pass.name;
    this.slider.max = pass.steps.length;
    this.slider.disabled = pass.steps.length === 0;
    weft.clear(this.notes, pass.notes ? weft.el("details", {}, weft.el("summary", {}, "What else it made"),
      weft.el("pre", { tabindex: 0 }, pass.notes)) : null,
      pass.decisions.length ? weft.el("details", {}, weft.el("summary", {}, weft.count(pass.decisions.length, "decision")),
        pass.decisions.slice(0, 300).map(d => weft.el("div", { class: "answer" },
          weft.button("show", () => this.view.goto(d.node)), ` ${d.what}, because ${d.why}`))) : null);
    this.goStep(step);
  }

  move(by) {
    const all = this.trace.passes[this.pass].steps.length;
    const now = this.step ?? all + 1;
    const next = now + by;
    if (next > all) {
      if (this.step === null && by > 0 && this.pass + 1 < this.trace.passes.length) this.showPass(this.pass + 1, 0);
      else this.goStep(null);
    } else if (next < 0) {
      if (this.pass > 0) this.showPass(this.pass - 1);
    } else this.goStep(next);
  }

  // The graph after so many steps; null: after the pass, with what it has that the one before has not.
  goStep(step) {
    const pass = this.trace.passes[this.pass], all = pass.steps.length;
    if (step !== null) step = all ? Math.min(step, all) : 0;
    this.step = weft.state.step = step;
    this.slider.value = step ?? all;
    const marks = {};
    let root = pass.after, focus = null, text = "after the pass";
    if (step === null) {
      if (pass.before !== null && root !== null && pass.before !== root) {
        const before = new Set(weft.reachable(this.trace.nodes, pass.before));
        marks.fresh = new Set(weft.reachable(this.trace.nodes, root).filter(n => !before.has(n)));
      } else if (pass.before === root) text = "the pass changed nothing";
    } else {
      root = this.replay.after(pass, step);
      if (step > 0) {
        const [rule, before, after] = pass.steps[step - 1], r = this.trace.rules[rule];
        marks.fresh = new Set([after]);
        focus = after;
        text = [`step ${step} of ${all}: `, weft.el("b", {}, r.name), " ", weft.el("code", {}, r.text), ` · ${r.file}:${r.line} · `,
          weft.el("span", { class: r.status.startsWith("proved") ? "good" : "soft" }, r.status || "not known")];
      } else text = all ? `before the pass; ${weft.count(all, "step")} ahead` : "before the pass";
      if (step < all) marks.old = new Set([pass.steps[step][1]]);
    }
    weft.clear(this.stepText, text);
    weft.say(this.stepText.textContent);
    this.view.show(this.replay.nodes, root, { marks, focus });
    this.shownRoot = root;
    this.fillText();
    this.fillSteps(pass);
  }

  // A window of the list: there may be thousands.
  fillSteps(pass) {
    const around = 30, at = this.step ?? pass.steps.length;
    const first = Math.max(0, Math.min(at - around, pass.steps.length - 2 * around));
    weft.clear(this.stepsList, pass.steps.slice(first, first + 2 * around).map(([rule, before, after], i) => {
      const number = first + i + 1, r = this.trace.rules[rule];
      return weft.el("li", { "aria-current": number === this.step ? "true" : null },
        weft.button([`${number} `, weft.el("b", {}, r.name), ` ${this.brief(before)} → ${this.brief(after)}`],
          () => this.goStep(number)));
    }));
    this.stepsList.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  brief(n) {
    const [op, , sources, argument] = this.replay.nodes[n];
    const inner = sources.slice(0, 3).map(s => {
      const [o, , , a] = this.replay.nodes[s];
      return o === "CONST" ? a : a ? `${o} ${a}` : o;
    });
    return `${op}${argument ? " " + argument : ""}(${inner.join(", ")}${sources.length > 3 ? ", …" : ""})`;
  }

  fillText() {
    if (!this.text.open || this.shownRoot === null) return;
    const most = 5000, lines = weft.printed(this.replay.nodes, this.shownRoot);
    const rest = lines.length > most ? [`... ${lines.length - most} more`] : [];
    weft.clear(this.text, weft.el("summary", {}, "The graph as text"),
      weft.el("pre", { tabindex: 0, id: "graph-text" }, [...lines.slice(0, most), ...rest].join("\n")));
  }

  tell(n) {
    const sites = this.replay.nodes[n][4] ?? [];
    weft.clear(this.info, this.view.described(n), sites.length ? [" · ", weft.lines(sites)] : null);
    if (sites.length) weft.chooseLine(weft.lineKey(sites[0]), false);
  }
};
