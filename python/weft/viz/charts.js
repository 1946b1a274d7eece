// Pictures over time: what ran, what lay in memory, and the versions of storages with who read them.

// ---- time

weft.views.time = function () {
  const { kernels, schedules, runs, compilations } = weft.data;
  const all = Math.max(weft.data.nanoseconds, 1), width = 1000, rowHeight = 22;
  const lanes = [
    ["schedules", schedules.map(s => ["made", s.begin, s.microseconds * 1e3, `schedule ${s.number}`,
      () => weft.go("graph", `s${s.number}`)])],
    ["compiling", compilations.map(([s, begin, ns]) => ["compiled", begin, ns, `schedule ${s} compiled`, null])],
    ["kernels", runs.map(([s, call, begin, ns]) => {
      const number = schedules[s].kernels[call];
      return ["", begin, ns, `kernel ${number}, ${kernels[number].name}`, () => weft.go("code", number)];
    })],
  ];
  const view = { from: 0, to: all };
  const svg = weft.el("svg", { class: "chart", viewBox: `0 0 ${width} ${lanes.length * 34 + 26}`, role: "img",
    "aria-label": "Timeline of the run; the table below has the same numbers" });
  const text = weft.el("p", { class: "soft", role: "status" }, "A bar is a schedule, a compilation or a run.");
  const draw = () => {
    const x = ns => 80 + (width - 90) * (ns - view.from) / (view.to - view.from);
    const parts = lanes.map(([name, bars], lane) => {
      const y = 6 + lane * 34, most = 3000;
      const seen = bars.filter(([, begin, ns]) => begin + ns >= view.from && begin <= view.to).slice(0, most);
      return [weft.el("text", { x: 4, y: y + 15 }, name), seen.map(([kind, begin, ns, what, go]) => {
        const left = Math.max(80, x(begin)), right = Math.min(width - 10, x(begin + ns));
        const tell = () => { text.textContent = `${what}: ${weft.time(ns)}, at ${weft.time(begin)}`; };
        return weft.el("rect", { class: `bar ${kind} ${go ? "clickable" : ""}`, x: left, y, width: Math.max(1, right - left),
          height: rowHeight, rx: 2, onclick: go, onmouseenter: tell, onfocus: tell, tabindex: go ? 0 : null,
          "aria-label": `${what}, ${weft.time(ns)}`, onkeydown: e => { if (e.key === "Enter" && go) go(); } });
      })];
    });
    const marks = [0, .25, .5, .75, 1].map(f => {
      const ns = view.from + f * (view.to - view.from), at = x(ns), bottom = lanes.length * 34 + 6;
      return [weft.el("line", { class: "axis", x1: at, x2: at, y1: 0, y2: bottom }),
        weft.el("text", { x: at, y: bottom + 14, "text-anchor": f === 1 ? "end" : "middle" }, weft.time(ns))];
    });
    weft.clear(svg, marks, parts);
  };
  const zoom = (factor, middle = .5) => {
    const span = Math.min(all, (view.to - view.from) * factor), at = view.from + middle * (view.to - view.from);
    view.from = Math.max(0, Math.min(at - middle * span, all - span));
    view.to = view.from + span;
    draw();
  };
  const shift = by => {
    const span = view.to - view.from;
    view.from = Math.max(0, Math.min(view.from + by * span, all - span));
    view.to = view.from + span;
    draw();
  };
  draw();
  return [
    weft.el("h2", {}, "The run over time"),
    weft.el("div", { class: "row" }, weft.button("closer", () => zoom(.5)), weft.button("farther", () => zoom(2)),
      weft.button("◀ earlier", () => shift(-.5)), weft.button("later ▶", () => shift(.5)), text),
    svg, weft.memoryChart(),
  ];
};

// ---- memory

weft.memoryChart = function () {
  const events = weft.data.memory;
  if (!events.length) return null;
  const all = Math.max(weft.data.nanoseconds, 1), width = 1000, height = 160;
  const live = new Map();
  let now = 0, peak = 0, peakAt = 0, atPeak = [];
  const points = [[0, 0]];
  for (const [time, number, bytes, sites, what] of events) {
    points.push([time, now]);
    now += bytes;
    points.push([time, now]);
    if (bytes > 0) live.set(number, { bytes, sites, what, time });
    else live.delete(number);
    if (now > peak) [peak, peakAt, atPeak] = [now, time, null];
    if (atPeak === null) atPeak = [...live.values()];
  }
  points.push([all, now]);
  const x = ns => 80 + (width - 90) * ns / all, y = b => height - 20 - (height - 40) * b / Math.max(peak, 1);
  const d = `M${x(0)},${y(0)}` + points.map(([t, b]) => `L${x(t).toFixed(1)},${y(b).toFixed(1)}`).join("") + `L${x(all)},${y(0)}Z`;
  const svg = weft.el("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Memory over time: at most ${weft.bytes(peak)}` },
    weft.el("path", { class: "area", d }),
    weft.el("text", { x: 4, y: y(peak) + 4 }, weft.bytes(peak)), weft.el("text", { x: 4, y: y(0) }, "0 B"),
    weft.el("line", { class: "axis", x1: x(peakAt), x2: x(peakAt), y1: 10, y2: height - 20 }));
  const holders = new Map();
  for (const { bytes, sites, what } of atPeak) {
    const key = `${what}|${sites.join()}`;
    const entry = holders.get(key) ?? { bytes: 0, count: 0, what, sites };
    entry.bytes += bytes;
    entry.count++;
    holders.set(key, entry);
  }
  const rows = [...holders.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 40).map(h => ({
    cells: [weft.bytes(h.bytes), h.count, h.what, weft.lines(h.sites)] }));
  return [weft.el("h2", {}, "Memory over time"), svg,
    weft.el("h3", {}, `What held it at the peak, ${weft.bytes(peak)} at ${weft.time(peakAt)}`),
    weft.table(["#bytes", "#pieces", "what", "lines"], rows, "Memory at the peak")];
};

// ---- storages

// Events of each storage, by its number: its versions, with what wrote them and who read them.
weft.storages = function () {
  const out = new Map();
  for (const [kind, number, version, site, time, dtype, shape, strides, offset] of weft.data.storages) {
    if (!out.has(number)) out.set(number, { number, site, versions: [{ site, readers: [], how: "made" }], views: [] });
    const s = out.get(number), view = { shape, strides, offset, dtype, isAll: shape.length === 0 };
    if (kind === "viewed") s.views.push({ site, ...view });
    else if (kind === "read") s.versions[version]?.readers.push({ site, ...view });
    else if (kind === "written" || kind === "replaced") {
      s.versions[version] = { site, readers: [], how: kind, view };
    } else if (kind === "gone") s.gone = time;
  }
  return [...out.values()];
};

weft.viewText = v => v.isAll ? "all of it"
  : `(${v.shape.join(", ")}) by strides (${v.strides.join(", ")})${v.offset ? ` from ${v.offset}` : ""}`;

weft.views.storages = function () {
  const all = weft.storages().map(s => ({ ...s, versions: s.versions.filter(Boolean) }));
  const line = weft.state.line;
  const interesting = all.filter(s => s.versions.length > 1 || s.views.length > 0)
    .filter(s => line === null || weft.data.sites[s.site] && [s.site, ...s.versions.map(v => v.site),
      ...s.versions.flatMap(v => v.readers.map(r => r.site))].some(site => weft.lineKey(site) === line));
  const copied = new Set(weft.data.schedules.flatMap(s => s.copies.flatMap(c => c.sites.map(weft.lineKey))));
  const most = 60;
  return [
    weft.el("h2", {}, "Storages: versions, views, and who reads which"),
    weft.el("p", { class: "soft" },
      `${weft.count(all.length, "storage")}, ${interesting.length} with writes or views`,
      line === null ? "" : ` at ${weft.lineText(line)}`, ". A write makes the next version; a line that read before it keeps ",
      "the version that it read. ", weft.el("span", { class: "key reduce" }), "the old content was copied, because something ",
      "still read it."),
    line === null ? null : weft.button("all lines", () => { weft.chooseLine(null, true); weft.render(); }),
    interesting.slice(0, most).map(s => weft.storagePicture(s, copied)),
    interesting.length > most ? weft.el("p", { class: "soft" }, `and ${interesting.length - most} more`) : null,
  ];
};

weft.storagePicture = function (s, copied) {
  const shown = s.versions.length > 40 ? [...s.versions.slice(0, 20), null, ...s.versions.slice(-19)] : s.versions;
  const boxWidth = 150, gap = 26, rowHeight = 18;
  const unique = list => {
    const seen = new Map();
    for (const r of list) seen.set(`${r.site}|${weft.viewText(r)}`, r);
    return [...seen.values()];
  };
  const readers = shown.map(v => v === null ? [] : unique(v.readers).slice(0, 6));
  const height = 62 + rowHeight * Math.max(1, ...readers.map(r => r.length));
  const title = weft.lineSource(s.site);
  const svg = weft.el("svg", { class: "chart", role: "img", width: shown.length * (boxWidth + gap) + 10, height,
    "aria-label": `Storage ${s.number}, ${weft.count(s.versions.length, "version")}` });
  shown.forEach((v, i) => {
    const x = 6 + i * (boxWidth + gap);
    if (v === null) return svg.append(weft.el("text", { x: x + 60, y: 26 }, "…"));
    const isCopied = v.how !== "made" && v.site && copied.has(weft.lineKey(v.site));
    const number = s.versions.indexOf(v);
    const go = () => weft.chooseLine(weft.lineKey(v.site), true);
    weft.add(svg, [
      i > 0 ? weft.el("path", { class: "edge", d: `M${x - gap},22L${x - 2},22m-5,-3l5,3l-5,3` }) : null,
      weft.el("g", { class: "clickable", onclick: go, tabindex: 0, role: "button",
        "aria-label": `version ${number}, ${v.how}`, onkeydown: e => { if (e.key === "Enter") go(); } },
        weft.el("rect", { class: `version ${isCopied ? "copied" : ""}`, x, y: 5, width: boxWidth, height: 36, rx: 4 }),
        weft.el("text", { x: x + 6, y: 19 }, `version ${number}: ${v.how}${isCopied ? ", in a copy" : ""}`),
        weft.el("text", { x: x + 6, y: 34 }, v.site ? weft.placeOf(v.site) : ""),
        v.view ? weft.el("title", {}, weft.viewText(v.view)) : null),
      readers[i].map((r, k) => weft.el("text", { x: x + 10, y: 58 + k * rowHeight, class: "clickable",
        onclick: () => weft.chooseLine(weft.lineKey(r.site), true) }, `↳ ${r.site ? weft.placeOf(r.site) : "weft"} reads`,
        weft.el("title", {}, weft.viewText(r)))),
    ]);
  });
  const views = unique(s.views);
  return weft.el("section", { "data-storage": s.number },
    weft.el("h3", {}, `Storage ${s.number}: `, weft.el("code", {}, title)),
    weft.el("div", { style: "overflow-x:auto" }, svg),
    weft.el("details", {}, weft.el("summary", {}, `as a table; ${weft.count(views.length, "view")}`),
      weft.table(["what", "line", "elements"], [
        ...s.versions.flatMap((v, i) => [
          { cells: [`version ${i} ${v.how}`, v.site ? weft.placeOf(v.site) : "", v.view ? weft.viewText(v.view) : ""] },
          ...unique(v.readers).map(r => ({ cells: [`  reads version ${i}`, r.site ? weft.placeOf(r.site) : "weft", weft.viewText(r)] }))]),
        ...views.map(v => ({ cells: ["a view", v.site ? weft.placeOf(v.site) : "", weft.viewText(v)] })),
      ], `Storage ${s.number}`)));
};
