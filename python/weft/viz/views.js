// The views of lists and texts: kernels, code, why, rules. Each is a function that returns elements.

weft.views = {};

// ---- kernels

weft.views.kernels = function () {
  const { kernels, schedules } = weft.data;
  const total = kernels.reduce((sum, k) => sum + k.nanoseconds, 0);
  const rows = kernels.map(k => {
    const share = total ? k.nanoseconds / total : 0;
    const reached = k.nanoseconds ? k.least_nanoseconds / k.nanoseconds : 0;
    return {
      onclick: () => weft.go("code", k.number),
      attributes: { "data-kernel": k.number },
      chosen: weft.state.kernel === k.number,
      cells: [k.number, k.name, k.runs, weft.time(k.nanoseconds), `${(share * 100).toFixed(0)}%`,
        weft.number(Math.round(k.bytes / Math.max(k.nanoseconds, 1) * 100) / 100),
        weft.number(Math.round(k.flops / Math.max(k.nanoseconds, 1) * 100) / 100),
        [`${Math.min(100, reached * 100).toFixed(0)}% `,
          weft.el("span", { class: "meter", style: `width:${Math.min(60, reached * 60)}px`, "aria-hidden": "true" })],
        weft.lines(k.sites), k.operations],
    };
  });
  const heads = ["#kernel", "name", "#runs", "#time", "#share", "#GB/s", "#GFLOPS", "of the limit", "lines", "operations"];
  const compile = weft.data.compilations.reduce((sum, c) => sum + c[2], 0);
  return [
    weft.el("h2", {}, "Kernels, in the order in which they first ran"),
    weft.el("p", { class: "soft" },
      `${weft.count(kernels.length, "kernel")} in ${weft.count(schedules.length, "schedule")}; `,
      `all runs took ${weft.time(total)} of ${weft.time(weft.data.nanoseconds)}, compiling ${weft.time(compile)}. `,
      "The limit is the least time in which this machine could move a kernel's bytes and do its arithmetic."),
    kernels.length ? weft.table(heads, rows, "Kernels") : weft.el("p", {}, "The program ran no kernel."),
    weft.el("h3", {}, "Schedules"),
    weft.table(["#schedule", "device", "kernels", "#made in", "why it was made", ""], schedules.map(s => ({
      attributes: { "data-schedule": s.number },
      cells: [s.number, s.device, s.kernels.map(n => [weft.kernelLink(n), " "]), weft.time(s.microseconds * 1e3),
        [s.why_made || "it was known", s.why_no_loops ? weft.el("div", { class: "soft" },
          `not a loop program: ${s.why_no_loops}`) : null],
        s.passes.length ? weft.button("its graph", () => weft.go("graph", `s${s.number}`)) : ""],
    })), "Schedules"),
    weft.schedulePicture(),
    weft.data.left_out.map(text => weft.el("p", { class: "soft" }, text)),
  ];
};

// Lines as buttons that show them in the program.
weft.lines = sites => sites.length ? sites.slice(0, 4).map(site => [weft.button(weft.placeOf(site), e => {
  e.stopPropagation();
  weft.chooseLine(weft.lineKey(site), true);
}), " "]).concat(sites.length > 4 ? ["…"] : []) : "–";

weft.kernelLink = n => weft.button(String(n), e => {
  e.stopPropagation();
  weft.go("code", n);
}, { title: weft.data.kernels[n].name, "aria-label": `kernel ${n}` });

// Which kernel waits for which, as a graph of its own.
weft.schedulePicture = function () {
  const s = weft.data.schedules[weft.data.kernels[weft.state.kernel]?.schedule ?? 0];
  if (!s || s.kernels.length < 2 || s.kernels.length > 400) return null;
  const nodes = s.kernels.map(number => {
    const k = weft.data.kernels[number];
    return ["KERNEL", weft.time(k.nanoseconds), k.waits_for, `${number} ${k.name}`];
  });
  nodes.push(["SINK", "void", s.kernels.map((_, i) => i), ""]);
  const view = new weft.GraphView();
  view.svg.style.height = "16rem";
  view.onchosen = n => { if (n < s.kernels.length) weft.go("code", s.kernels[n]); };
  queueMicrotask(() => view.show(nodes, nodes.length - 1));
  return [weft.el("h3", {}, `Schedule ${s.number}: what waits for what`), view.svg];
};

// ---- code

weft.views.code = function () {
  const k = weft.data.kernels[weft.state.kernel ?? 0];
  if (!k) return weft.el("p", {}, "The program ran no kernel.");
  weft.chooseLine(k.sites.length ? weft.lineKey(k.sites[0]) : null, false);
  const where = weft.el("div", {}, weft.el("p", { class: "soft" }, "unpacking …"));
  weft.blob(k.blob ?? "").then(blob => {
    if (!blob) return weft.clear(where, weft.el("p", { class: "soft" }, "Its code is not in the page."));
    weft.clear(where, blob.texts.map(({ name, text }, i) => weft.el("details", { open: i === 0 },
      weft.el("summary", {}, `${name}, ${weft.count(text.split("\n").length, "line")}`),
      weft.el("pre", { tabindex: 0, "aria-label": name, "data-text": name }, text))));
  });
  const s = weft.data.schedules[k.schedule];
  const decided = s.decisions.filter(d => d.sites.some(site => k.sites.includes(site)));
  return [
    weft.el("div", { class: "row" },
      weft.button("◀ kernel", () => weft.go("code", Math.max(0, k.number - 1)), { "aria-label": "the kernel before" }),
      weft.button("kernel ▶", () => weft.go("code", Math.min(weft.data.kernels.length - 1, k.number + 1)),
        { "aria-label": "the next kernel" }),
      weft.el("h2", { id: "kernel-name" }, `Kernel ${k.number}: ${k.name}`),
      k.blob ? weft.button("its graph, pass by pass", () => weft.go("graph", k.blob)) : null),
    weft.el("p", {}, "of ", weft.lines(k.sites), ` · ${k.operations} · ${weft.count(k.runs, "run")}, ` +
      `${weft.time(k.nanoseconds)} · ${weft.bytes(k.bytes)} · limit ${weft.time(k.least_nanoseconds)}`),
    decided.length ? weft.el("details", {}, weft.el("summary", {}, weft.count(decided.length, "decision")),
      decided.map(weft.decision)) : null,
    where,
  ];
};

// ---- why

weft.decision = function (d) {
  const numbers = Object.entries(d.numbers).map(([name, value]) => `${name} ${weft.number(value)}`).join(", ");
  return weft.el("div", { class: "answer" },
    weft.el("div", {}, weft.el("b", {}, d.what), `, because ${d.why}`, numbers ? ` (${numbers})` : ""),
    weft.el("div", { class: "soft" }, weft.el("code", {}, d.node), d.other ? [" and ", weft.el("code", {}, d.other)] : null),
    weft.el("div", { class: "soft" }, `pass ${d.pass} · `, weft.lines(d.sites),
      d.other_sites?.length ? [" and ", weft.lines(d.other_sites)] : null),
    d.measured ? weft.el("div", { class: "good" }, `measured: ${d.measured.text}`) : null);
};

weft.views.why = function () {
  const line = weft.state.line;
  const at = sites => line === null || sites.some(site => weft.lineKey(site) === line);
  const out = [];
  for (const s of weft.data.schedules) {
    const decisions = s.decisions.filter(d => at(d.sites) || at(d.other_sites ?? []));
    const copies = s.copies.filter(c => at(c.sites));
    const isMade = s.why_made && (line === null || s.kernels.some(n => at(weft.data.kernels[n].sites)));
    if (!decisions.length && !copies.length && !isMade) continue;
    out.push(weft.el("h3", {}, `Schedule ${s.number}`));
    if (isMade) {
      out.push(weft.el("div", { class: "answer" }, weft.el("b", {}, "compiled"), `, because ${s.why_made}`,
        s.why_no_loops ? weft.el("div", { class: "soft" }, `not a loop program: ${s.why_no_loops}`) : null));
    }
    for (const c of copies) {
      out.push(weft.el("div", { class: "answer" }, weft.el("b", {}, "copied"), `, because ${c.why}`,
        weft.el("div", { class: "soft" }, weft.el("code", {}, c.node), " ", weft.lines(c.sites)),
        c.measured ? weft.el("div", { class: "good" }, `measured: ${c.measured.text}`) : null));
    }
    const most = 200;
    out.push(decisions.slice(0, most).map(weft.decision));
    if (decisions.length > most) out.push(weft.el("p", { class: "soft" }, `and ${decisions.length - most} more`));
  }
  const text = line === null ? "All lines: choose one in the program for its own answers."
    : `What was decided about ${weft.lineText(line)}.`;
  return [
    weft.el("h2", {}, "Why"),
    weft.el("div", { class: "row" }, weft.el("span", { class: "soft", id: "why-line" }, text),
      line !== null ? weft.button("all lines", () => { weft.chooseLine(null, true); weft.render(); }) : null),
    out.length ? out : weft.el("p", {}, "Nothing was computed for this line."),
  ];
};

// ---- rules

weft.views.rules = function () {
  const rules = weft.data.rules;
  return [
    weft.el("h2", {}, "Rules that fired"),
    weft.el("p", { class: "soft" },
      `${weft.count(rules.length, "rule")}, ${rules.reduce((sum, r) => sum + r.fired, 0)} matches in all. `,
      "Proved: Z3 has shown that both sides are equal for every value of every dtype that the rule claims."),
    weft.table(["rule", "#tried", "#fired", "#time", "what it says", "status", "where"], rules.map(r => ({
      attributes: { "data-rule": r.name },
      cells: [r.name, r.tried, r.fired, weft.time(r.nanoseconds), weft.el("code", {}, r.text),
        weft.el("span", { class: r.status.startsWith("proved") ? "good" : "" }, r.status), `${r.file}:${r.line}`],
    })), "Rules"),
  ];
};
