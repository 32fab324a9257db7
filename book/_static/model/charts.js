// What the model's page draws, and the rule for the crossover. Colours are classes, as in lib/interactive.css:
// s0 to s3 are the four colours of lib/figures.py, each with a dash of its own.
"use strict";

// eslint-disable-next-line no-unused-vars
const languageModelCharts = (() => {
  /** An element with attributes and children; `html("b", {class: "x"}, "words")`. */
  function html(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  /** The same in a drawing. */
  function svg(tag, attributes = {}, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  const powers = (from, to, base) =>
    Array.from({ length: 30 }, (_, i) => base ** (i - 12)).filter((tick) => tick >= from && tick <= to);

  /** Ticks of an axis: powers of `log`, or four to eight round numbers. */
  function ticksOf(from, to, log) {
    if (log) {
      const all = powers(from * 0.999, to * 1.001, log);
      return all.filter((_, i) => i % Math.ceil(all.length / 7) === 0);
    }
    const rough = (to - from) / 5;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = size * [1, 2, 5, 10].find((factor) => factor * size >= rough);
    const ticks = [];
    for (let tick = Math.ceil(from / step) * step; tick <= to + step / 1e6; tick += step) ticks.push(tick);
    return ticks;
  }

  const short = (value) => String(+value.toPrecision(3)).replace(/^-/, "−");

  /**
   * A line chart as an SVG element, 480 units wide.
   * x, y: {from, to, label, log: base or undefined}. lines: [{points: [[x, y], ...], style: "s0", dots: true?}].
   * marks: [{x, words, low: at the foot?}], vertical lines. words: the text alternative.
   */
  function lineChart({ x, y, lines, marks = [], words }) {
    const [left, top, width, height] = [58, 12, 408, 196];
    const along = (axis, value) => {
      const f = axis.log ? Math.log : (v) => v;
      return (f(value) - f(axis.from)) / (f(axis.to) - f(axis.from));
    };
    const at = ([a, b]) => [left + width * along(x, a), top + height * (1 - along(y, b))].map((v) => v.toFixed(1));
    const chart = svg("svg", { viewBox: "0 0 480 252", role: "img", "aria-label": words });
    const grid = [];
    for (const tick of ticksOf(x.from, x.to, x.log)) {
      const [across] = at([tick, y.from]);
      grid.push(`M${across} ${top}v${height}`);
      chart.append(svg("text", { x: across, y: top + height + 18, "text-anchor": "middle" }, short(tick)));
    }
    for (const tick of ticksOf(y.from, y.to, y.log)) {
      const [, down] = at([x.from, tick]);
      grid.push(`M${left} ${down}h${width}`);
      chart.append(svg("text", { x: left - 6, y: +down + 5, "text-anchor": "end" }, short(tick)));
    }
    chart.append(
      svg("path", { class: "grid", d: grid.join("") }),
      svg("path", { class: "axis", d: `M${left} ${top}h${width}v${height}h${-width}z` }),
      svg("text", { x: left + width / 2, y: 247, "text-anchor": "middle" }, x.label),
      svg("text", { transform: `translate(15 ${top + height / 2})rotate(-90)`, "text-anchor": "middle" }, y.label),
    );
    for (const { points, style, dots, width: thick = 2.5 } of lines) {
      const inside = points.filter(([a, b]) => a >= x.from && a <= x.to && Number.isFinite(b));
      const places = inside.map(([a, b]) => at([a, Math.min(Math.max(b, y.from), y.to)]));
      if (dots) {
        chart.append(svg("g", { class: style }, ...places.map(([cx, cy]) => svg("circle", { class: "fill", cx, cy, r: dots }))));
      } else if (places.length) {
        chart.append(svg("path", { class: `line ${style}`, "stroke-width": thick, d: `M${places.join("L").replaceAll(",", " ")}` }));
      }
    }
    for (const mark of marks) {
      const [across] = at([mark.x, y.from]);
      chart.append(
        svg("path", { class: "mark", d: `M${across} ${top}v${height}` }),
        svg("text", { class: "halo", x: +across + 5, y: mark.low ? top + height - 8 : top + 15 }, mark.words),
      );
    }
    return chart;
  }

  /** Lines with their names, in words. */
  function legend(entries) {
    const sample = (style) =>
      svg("svg", { viewBox: "0 0 34 8", "aria-hidden": "true" }, svg("path", { class: `line ${style}`, d: "M1 4h32", "stroke-width": 2.5 }));
    return html("ul", { class: "legend" }, ...entries.map(([style, words]) => html("li", {}, sample(style), words)));
  }

  /** A table; the first column names the rows. */
  function table(caption, head, rows) {
    const cells = (row) => row.map((words, i) => (i ? html("td", {}, words) : html("th", { scope: "row" }, words)));
    return html(
      "table",
      {},
      html("caption", {}, caption),
      html("thead", {}, html("tr", {}, ...head.map((words) => html("th", { scope: "col" }, words)))),
      html("tbody", {}, ...rows.map((row) => html("tr", {}, ...cells(row)))),
    );
  }

  /** RoPE as clock hands: a column for each of the last tokens, a row for each pair of a head's numbers. */
  function clockHands(turned, headDim, tokens, words) {
    const [cell, hand, left] = [26, 10, 44];
    const pairs = headDim / 2;
    const width = left + tokens.length * cell + 4;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${pairs * cell + 26}`, role: "img", "aria-label": words });
    tokens.forEach((token, column) => {
      const distance = tokens.length - 1 - column;
      const x = left + cell * (column + 0.5);
      for (let pair = 0; pair < pairs; pair++) {
        const [up, across] = [turned[distance * headDim + 2 * pair], turned[distance * headDim + 2 * pair + 1]];
        const y = cell * (pair + 0.5) + 2;
        const box = { x: x - cell / 2 + 1, y: y - cell / 2 + 1, width: cell - 2, height: cell - 2, rx: 5 };
        picture.append(
          svg("rect", { ...box, class: `cell s${up < 0 ? 1 : 0}`, "fill-opacity": (0.6 * Math.abs(up)).toFixed(2) }),
          svg("path", { class: "line s", "stroke-width": 2, d: `M${x} ${y}l${(-hand * across).toFixed(1)} ${(-hand * up).toFixed(1)}` }),
        );
      }
      picture.append(svg("text", { x, y: pairs * cell + 20, "text-anchor": "middle" }, token));
    });
    picture.append(
      svg("text", { x: left - 8, y: cell * 0.5 + 7, "text-anchor": "end" }, "fast"),
      svg("text", { x: left - 8, y: cell * (pairs - 0.5) + 7, "text-anchor": "end" }, "slow"),
    );
    return picture;
  }

  /** Draw rows of numbers on a canvas: blue above 0, orange below, the deeper the farther from it. */
  function paint(canvas, values, rows, columns, { limit, root = false }) {
    Object.assign(canvas, { width: columns, height: rows });
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (let i = 0; i < values.length; i++) {
      const depth = Math.min(Math.abs(values[i]) / limit, 1);
      image.data.set(values[i] < 0 ? [213, 94, 0] : [0, 114, 178], 4 * i);
      image.data[4 * i + 3] = Math.round(255 * (root ? Math.sqrt(depth) : depth));
    }
    context.putImageData(image, 0, 0);
  }

  // --- the crossover of exercise 10 (lib/crossover.py; a test compares)

  /** First quartile, median and third quartile of the ratio above / below, formed round by round. */
  function ratioSpread(above, below) {
    const ratios = above.map((seconds, round) => seconds / below[round]).sort((a, b) => a - b);
    return [1, 2, 3].map((quarter) => {
      const place = (quarter * (ratios.length - 1)) / 4;
      const low = ratios[Math.floor(place)];
      return low + (place % 1) * (ratios[Math.ceil(place)] - low);
    });
  }

  /** The first length from which the first quartile of the ratio stays above the threshold; null if there is none. */
  function crossover(lengths, uncached, cached, threshold = 1.2) {
    let first = null;
    lengths.forEach((length, i) => {
      if (ratioSpread(uncached[i], cached[i])[0] <= threshold) first = null;
      else first ??= length;
    });
    return first;
  }

  return { html, lineChart, legend, table, clockHands, paint, short, ratioSpread, crossover };
})();
