// The page: tabs, the program beside them, keys, and an address for what is shown.

weft.state = { tab: "kernels", kernel: null, line: null, graph: null, pass: null, step: null, passView: null };
weft.tabs = [["kernels", "Kernels"], ["code", "Code"], ["graph", "Graphs"], ["why", "Why"], ["storages", "Storages"],
  ["time", "Time and memory"], ["rules", "Rules"]];

weft.render = function () {
  const s = weft.state;
  s.passView = null;
  for (const [name] of weft.tabs) {
    const tab = document.getElementById(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === s.tab));
    tab.tabIndex = name === s.tab ? 0 : -1;
  }
  const main = document.getElementById("main");
  main.setAttribute("role", "tabpanel");
  main.setAttribute("aria-labelledby", `tab-${s.tab}`);
  weft.clear(main, weft.views[s.tab]());
  main.scrollTop = 0;
  weft.writeAddress();
};

// Shows a tab; `what` is a kernel for "code", a graph for "graph".
weft.go = function (tab, what) {
  const s = weft.state;
  if (tab === "code" && what !== undefined) s.kernel = what;
  if (tab === "graph" && what !== undefined) {
    if (what !== s.graph) s.pass = s.step = null;
    s.graph = what;
    const kernel = weft.data.kernels.find(k => k.blob === what);
    if (kernel) s.kernel = kernel.number;
  }
  s.tab = tab;
  weft.render();
};

// ---- the program

weft.lineText = key => {
  const [file, line] = key.split(":").map(Number), f = weft.data.files[file];
  return f.is_script ? `line ${line}` : `${f.name}:${line}`;
};
weft.lineSource = site => {
  const [file, line] = weft.data.sites[site] ?? [0, 0];
  const text = weft.data.files[file]?.lines[line - 1]?.trim();
  return site ? `${weft.placeOf(site)}: ${text ?? ""}` : "made by weft";
};

weft.drawSource = function () {
  const files = weft.data.files.map((f, number) => [f, number]).filter(([f]) => f.lines.length);
  weft.clear(document.getElementById("source"), files.map(([f, number]) => [
    weft.el("div", { class: "file" }, f.name),
    f.lines.map((text, i) => {
      const key = `${number}:${i + 1}`, kernels = weft.byLine.get(key) ?? [];
      const isUsed = kernels.length > 0 || weft.usedLines.has(key);
      return weft.el(isUsed ? "button" : "div", { class: `src ${isUsed ? "has" : ""}`, "data-line": key,
        type: isUsed ? "button" : null, onclick: isUsed ? () => weft.followLine(key) : null,
        "aria-label": isUsed ? `line ${i + 1}: ${text.trim()}, ${weft.count(kernels.length, "kernel")}` : null },
        weft.el("span", { class: "number" }, i + 1), weft.el("code", {}, text || " "),
        kernels.length ? weft.el("span", { class: "chips" },
          `kernel ${kernels.slice(0, 3).join(", ")}${kernels.length > 3 ? ", …" : ""}`) : null);
    })]));
};

// Lines that something is known of, if only that a storage was read there.
weft.usedLines = new Set(weft.data.storages.filter(e => e[3]).map(e => weft.lineKey(e[3])));

// Marks a line; chosen by the user, it is also what "Why" and "Storages" are about.
weft.chooseLine = function (key, isAsked) {
  if (isAsked) weft.state.line = key;
  for (const e of document.querySelectorAll(".src.chosen")) e.classList.remove("chosen");
  const chosen = key && document.querySelector(`.src[data-line="${key}"]`);
  if (chosen) {
    chosen.classList.add("chosen");
    chosen.scrollIntoView({ block: "nearest" });
    if (isAsked) weft.say(`${weft.lineText(key)}: ${weft.count((weft.byLine.get(key) ?? []).length, "kernel")}`);
  }
  weft.writeAddress();
};

// A line was clicked: what is shown follows it.
weft.followLine = function (key) {
  weft.chooseLine(key, true);
  const kernels = weft.byLine.get(key) ?? [];
  if (["why", "storages"].includes(weft.state.tab)) return weft.render();
  if (kernels.length) {
    const at = kernels.indexOf(weft.state.kernel);
    weft.go("code", kernels[weft.state.tab === "code" ? (at + 1) % kernels.length : Math.max(at, 0)]);
    weft.chooseLine(key, false);
  } else weft.go("storages");
};

// ---- the address

weft.writeAddress = function () {
  const s = weft.state, parts = [`tab=${s.tab}`];
  if (s.kernel !== null) parts.push(`kernel=${s.kernel}`);
  if (s.line !== null) parts.push(`line=${s.line}`);
  if (s.graph !== null && s.tab === "graph") parts.push(`graph=${s.graph}`);
  if (s.pass !== null && s.tab === "graph") parts.push(`pass=${s.pass}`);
  if (s.step !== null && s.tab === "graph") parts.push(`step=${s.step}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
};

weft.readAddress = function () {
  const given = new URLSearchParams(location.hash.slice(1)), s = weft.state;
  const number = name => /^\d+$/.test(given.get(name) ?? "") ? Number(given.get(name)) : null;
  if (weft.tabs.some(([name]) => name === given.get("tab"))) s.tab = given.get("tab");
  const kernel = number("kernel");
  if (kernel !== null && kernel < weft.data.kernels.length) s.kernel = kernel;
  s.graph = given.get("graph");
  s.pass = number("pass");
  s.step = number("step");
  s.line = /^\d+:\d+$/.test(given.get("line") ?? "") && weft.data.files[given.get("line").split(":")[0]]
    ? given.get("line") : null;
};

// ---- keys and theme

weft.keys = [["1 … 7", "a view"], ["j, k", "the next kernel, the one before"], ["n, p", "a step forward, back (Graphs)"],
  ["]  [", "the next pass, the one before (Graphs)"], ["/", "search nodes (Graphs)"],
  ["arrows", "walk a graph that has the focus: sources above, users below"], ["Enter", "open what a node hides"],
  ["+ − 0", "larger, smaller, fit a graph"], ["t", "dark or light"], ["?", "these keys"]];

weft.onKey = function (e) {
  if (e.ctrlKey || e.altKey || e.metaKey || ["INPUT", "SELECT", "TEXTAREA"].includes(e.target.tagName)) return;
  const s = weft.state, pass = s.passView, last = weft.data.kernels.length - 1;
  const digit = Number(e.key);
  if (digit >= 1 && digit <= weft.tabs.length) weft.go(weft.tabs[digit - 1][0]);
  else if (e.key === "j" && last >= 0) weft.go("code", Math.min(last, (s.kernel ?? -1) + 1));
  else if (e.key === "k" && last >= 0) weft.go("code", Math.max(0, (s.kernel ?? 1) - 1));
  else if (e.key === "n" && pass) pass.move(1);
  else if (e.key === "p" && pass) pass.move(-1);
  else if (e.key === "]" && pass) pass.showPass(Math.min(pass.trace.passes.length - 1, pass.pass + 1));
  else if (e.key === "[" && pass) pass.showPass(Math.max(0, pass.pass - 1));
  else if (e.key === "/" && pass) pass.searchBox.focus();
  else if (e.key === "t") weft.switchTheme();
  else if (e.key === "?") weft.showKeys();
  else return;
  e.preventDefault();
};

weft.switchTheme = function () {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
};

weft.showKeys = function () {
  const dialog = document.getElementById("keys");
  weft.clear(dialog, weft.el("h2", {}, "Keys"), weft.table(["key", "what it does"],
    weft.keys.map(([key, what]) => ({ cells: [weft.el("kbd", {}, key), what] })), "Keys"),
    weft.button("close", () => dialog.close()));
  if (dialog.showModal) dialog.showModal();
};

weft.listenDivider = function () {
  const divider = document.getElementById("divider"), source = document.getElementById("source");
  const set = share => { source.style.width = `${Math.min(75, Math.max(8, share))}%`; };
  divider.addEventListener("pointerdown", e => divider.setPointerCapture(e.pointerId));
  divider.addEventListener("pointermove", e => { if (e.buttons) set(100 * e.clientX / innerWidth); });
  divider.addEventListener("keydown", e => {
    const by = { ArrowLeft: -3, ArrowRight: 3 }[e.key];
    if (by) set(100 * source.getBoundingClientRect().width / innerWidth + by);
  });
};

weft.start = function () {
  if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
  weft.readAddress();
  document.getElementById("title").textContent = weft.data.title;
  const tabs = document.getElementById("tabs");
  weft.add(tabs, weft.tabs.map(([name, text]) => weft.button(text, () => weft.go(name), { role: "tab", id: `tab-${name}`,
    "aria-controls": "main" })));
  tabs.addEventListener("keydown", e => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by) return;
    const at = weft.tabs.findIndex(([name]) => name === weft.state.tab), all = weft.tabs.length;
    const [name] = weft.tabs[(at + by + all) % all];
    weft.go(name);
    document.getElementById(`tab-${name}`).focus();
  });
  if (weft.data.failure) {
    const failure = document.getElementById("failure");
    failure.textContent = weft.data.failure;
    failure.hidden = false;
  }
  document.getElementById("theme").addEventListener("click", weft.switchTheme);
  document.getElementById("help").addEventListener("click", weft.showKeys);
  addEventListener("keydown", weft.onKey);
  weft.listenDivider();
  weft.drawSource();
  if (weft.state.line) weft.chooseLine(weft.state.line, false);
  weft.render();
  document.documentElement.dataset.ready = "yes";
};

weft.start();
