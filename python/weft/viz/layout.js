// A graph in layers: sources above users, few crossings, short edges. Iterative, and linear but for the sorting of layers.

// `nodes`: [{id, width, height}], `edges`: [[source, user]] by index, sources before users. Sets x and y (of the middle) and
// returns {width, height, points: of each edge}.
weft.layout = function (nodes, edges) {
  const gapX = 14, gapY = 34, mostBends = 6000;
  const layer = layersOf(nodes.length, edges);
  const bends = edges.reduce((sum, [a, b]) => sum + Math.max(0, layer[b] - layer[a] - 1), 0);
  const withBends = bends <= mostBends;

  // Items are nodes, then a bend of an edge in every layer that it crosses.
  const items = nodes.map((n, i) => ({ layer: layer[i], width: n.width, up: [], down: [], x: 0 }));
  const paths = edges.map(([a, b]) => {
    const path = [a];
    for (let l = layer[a] + 1; withBends && l < layer[b]; l++) {
      path.push(items.length);
      items.push({ layer: l, width: 2, up: [], down: [], x: 0 });
    }
    path.push(b);
    for (let i = 1; i < path.length; i++) {
      items[path[i - 1]].down.push(path[i]);
      items[path[i]].up.push(path[i - 1]);
    }
    return path;
  });

  const layers = [];
  items.forEach((item, i) => (layers[item.layer] ??= []).push(i));
  for (let i = 0; i < layers.length; i++) layers[i] ??= [];
  orderLayers(layers, items);
  placeLayers(layers, items, gapX);

  const heights = layers.map(l => Math.max(0, ...l.map(i => i < nodes.length ? nodes[i].height : 0)));
  const tops = [];
  let y = 10;
  for (const h of heights) {
    tops.push(y + h / 2);
    y += h + gapY;
  }
  const left = Math.min(...items.map(i => i.x - i.width / 2)) - 10;
  const right = Math.max(...items.map(i => i.x + i.width / 2)) + 10;
  nodes.forEach((n, i) => {
    n.x = items[i].x - left;
    n.y = tops[layer[i]];
  });
  const points = paths.map(path => path.map((i, k) => {
    const n = nodes[i];
    const own = i < nodes.length ? (k === 0 ? n.height / 2 : -n.height / 2) : 0;
    return [items[i].x - left, tops[items[i].layer] + own];
  }));
  return { width: right - left, height: y - gapY + 10, points };

  // As deep as sources demand, and sources as near to their first user as they can be.
  function layersOf(count, all) {
    const depth = new Array(count).fill(0), first = new Array(count).fill(Infinity);
    const isFed = new Array(count).fill(false);
    for (const [a, b] of all) {  // sources come before users
      depth[b] = Math.max(depth[b], depth[a] + 1);
      isFed[b] = true;
    }
    for (const [a, b] of all) first[a] = Math.min(first[a], depth[b]);
    for (let i = 0; i < count; i++) if (!isFed[i] && first[i] !== Infinity) depth[i] = first[i] - 1;
    return depth;
  }

  // Each layer by the mean place of its neighbours, down and up.
  function orderLayers(all, list) {
    const place = new Float64Array(list.length);
    all.forEach(l => l.forEach((i, k) => { place[i] = k; }));
    for (let sweep = 0; sweep < 6; sweep++) {
      const isDown = sweep % 2 === 0;
      const order = isDown ? all.slice(1) : all.slice(0, -1).reverse();
      for (const l of order) {
        const mean = new Map(l.map(i => {
          const near = isDown ? list[i].up : list[i].down;
          return [i, near.length ? near.reduce((s, n) => s + place[n], 0) / near.length : place[i]];
        }));
        l.sort((a, b) => mean.get(a) - mean.get(b) || place[a] - place[b]);
        l.forEach((i, k) => { place[i] = k; });
      }
    }
  }

  // Items go to the mean of their neighbours, as far as those beside them let them.
  function placeLayers(all, list, gap) {
    for (const l of all) {
      let x = 0;
      for (const i of l) {
        list[i].x = x + list[i].width / 2;
        x += list[i].width + gap;
      }
      for (const i of l) list[i].x -= x / 2;
    }
    for (let sweep = 0; sweep < 8; sweep++) {
      const order = sweep % 2 === 0 ? all : all.slice().reverse();
      for (const l of order) {
        const wanted = l.map(i => {
          const near = sweep % 2 === 0 ? list[i].up : list[i].down;
          return near.length ? near.reduce((s, n) => s + list[n].x, 0) / near.length : list[i].x;
        });
        const apart = (k) => (list[l[k - 1]].width + list[l[k]].width) / 2 + gap;
        const fromLeft = wanted.slice(), fromRight = wanted.slice();
        for (let k = 1; k < l.length; k++) fromLeft[k] = Math.max(fromLeft[k], fromLeft[k - 1] + apart(k));
        for (let k = l.length - 2; k >= 0; k--) {
          fromRight[k] = Math.min(fromRight[k], fromRight[k + 1] - apart(k + 1));
        }
        l.forEach((i, k) => { list[i].x = (fromLeft[k] + fromRight[k]) / 2; });
      }
    }
  }
};
