// The layout of a plan's graph: positions of boxes and edges. A pure function of the steps.
import { Graph, layout } from "./vendor/dagre/dagre.esm.js";
import { direct } from "./trace_stats.js";

export const BOX = { width: 184, height: 60 };
const MANY = 300;

/** {width, height, boxes: [{x, y}] by position, lines: [{from, to, points}]}; x and y are middles. */
export function planLayout(steps, downwards) {
  const edges = [...direct(steps)].flatMap(([to, reads]) => reads.map((from) => ({ from, to })));
  return edges.length > MANY ? inLayers(steps, edges, downwards) : byDagre(steps, edges, downwards);
}

function byDagre(steps, edges, downwards) {
  const graph = new Graph();
  graph.setGraph({ rankdir: downwards ? "TB" : "LR", nodesep: 18, ranksep: downwards ? 34 : 52, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { position } of steps) graph.setNode(String(position), { ...BOX });
  for (const { from, to } of edges) graph.setEdge(String(from), String(to));
  layout(graph);
  const { width, height } = graph.graph();
  return {
    width: steps.length ? width : 0,
    height: steps.length ? height : 0,
    boxes: steps.map(({ position }) => graph.node(String(position))),
    lines: edges.map(({ from, to }) => ({ from, to, points: graph.edge(String(from), String(to)).points })),
  };
}

/** For plans with very many lines, which dagre would take seconds for: by depth, in order. */
function inLayers(steps, edges, downwards) {
  const depth = new Map(steps.map(({ position }) => [position, 0]));
  for (const { from, to } of edges) depth.set(to, Math.max(depth.get(to), depth.get(from) + 1));
  const filled = [];
  const boxes = steps.map(({ position }) => {
    const layer = depth.get(position);
    const row = (filled[layer] = (filled[layer] ?? 0) + 1) - 1;
    const [along, across] = downwards ? [BOX.height + 34, BOX.width + 18] : [BOX.width + 52, BOX.height + 18];
    const [a, b] = [8 + layer * along, 8 + row * across];
    return downwards ? { x: b + BOX.width / 2, y: a + BOX.height / 2 } : { x: a + BOX.width / 2, y: b + BOX.height / 2 };
  });
  const shift = downwards ? [0, BOX.height / 2] : [BOX.width / 2, 0];
  return {
    width: Math.max(...boxes.map((box) => box.x)) + BOX.width / 2 + 8,
    height: Math.max(...boxes.map((box) => box.y)) + BOX.height / 2 + 8,
    boxes,
    lines: edges.map(({ from, to }) => ({
      from,
      to,
      points: [
        { x: boxes[from].x + shift[0], y: boxes[from].y + shift[1] },
        { x: boxes[to].x - shift[0], y: boxes[to].y - shift[1] },
      ],
    })),
  };
}

/** A smooth line through `points`, as the d of a path. */
export function curve(points) {
  const [first, ...rest] = points;
  let d = `M${at(first)}`;
  for (let i = 0; i < rest.length - 1; i++) {
    const middle = { x: (rest[i].x + rest[i + 1].x) / 2, y: (rest[i].y + rest[i + 1].y) / 2 };
    d += ` Q${at(rest[i])} ${at(i === rest.length - 2 ? rest[i + 1] : middle)}`;
  }
  return rest.length === 1 ? `${d} L${at(rest[0])}` : d;
}

function at({ x, y }) {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
