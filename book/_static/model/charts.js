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

  /** A number in few characters: three digits, thousands as k, millions as M. */
  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return `${short(value / 1e6)}M`;
    if (size >= 1e4) return `${short(value / 1e3)}k`;
    return String(+value.toPrecision(3)).replace(/^-/, "−");
  }

  /** Whether an element has the width of a phone. A picture in it gets fewer units, so that letters stay legible. */
  const isNarrow = (element) => element.clientWidth > 0 && element.clientWidth < 420;

  /**
   * A line chart as an SVG element, 480 units wide or, when narrow, 340.
   * x, y: {from, to, label, log: base or undefined}.
   * lines: [{points: [[x, y], ...], style: "s0", dots: true?, width}]; what lies above the chart becomes a triangle.
   * marks: [{x, words, low: at the foot?}], vertical lines. words: the text alternative.
   */
  function lineChart({ x, y, lines, marks = [], words, narrow = false }) {
    const [left, top, width, height] = [58, 12, narrow ? 268 : 408, 196];
    const along = (axis, value) => {
      const f = axis.log ? Math.log : (v) => v;
      return (f(value) - f(axis.from)) / (f(axis.to) - f(axis.from));
    };
    const at = ([a, b]) => [left + width * along(x, a), top + height * (1 - along(y, b))].map((v) => v.toFixed(1));
    const label = (attributes, text) => svg("text", { "text-anchor": "middle", ...attributes }, text);
    const chart = svg("svg", { viewBox: `0 0 ${left + width + 14} 252`, role: "img", "aria-label": words });
    const grid = [];
    for (const tick of ticksOf(x.from, x.to, x.log)) {
      const [across] = at([tick, y.from]);
      grid.push(`M${across} ${top}v${height}`);
      chart.append(label({ x: across, y: top + height + 18 }, short(tick)));
    }
    for (const tick of ticksOf(y.from, y.to, y.log)) {
      const [, down] = at([x.from, tick]);
      grid.push(`M${left} ${down}h${width}`);
      chart.append(label({ x: left - 6, y: +down + 5, "text-anchor": "end" }, short(tick)));
    }
    chart.append(
      svg("path", { class: "grid", d: grid.join("") }),
      svg("path", { class: "axis", d: `M${left} ${top}h${width}v${height}h${-width}z` }),
      label({ x: left + width / 2, y: 247 }, x.label),
      label({ transform: `translate(14 ${top + height / 2})rotate(-90)` }, y.label),
    );
    for (const line of lines) {
      const inside = line.points.filter(([a, b]) => a >= x.from && a <= x.to && Number.isFinite(b));
      const above = inside.filter(([, b]) => b > y.to).map(([a]) => at([a, y.to]));
      const places = inside.map(([a, b]) => at([a, Math.min(Math.max(b, y.from), y.to)]).join(" "));
      if (line.dots) {
        const within = inside.filter(([, b]) => b <= y.to).map((point) => `M${at(point).join(" ")}h0`);
        chart.append(svg("path", { class: `dots ${line.style}`, d: within.join("") }));
      } else if (places.length) {
        const thick = line.width ?? 2.5;
        chart.append(svg("path", { class: `line ${line.style}`, "stroke-width": thick, d: `M${places.join("L")}` }));
      }
      const triangles = above.map(([across, down]) => `M${across} ${down}l-4 8h8z`).join("");
      if (triangles) chart.append(svg("path", { class: `above ${line.style}`, d: triangles }));
    }
    for (const mark of marks) {
      const [across] = at([mark.x, y.from]);
      const down = mark.low ? top + height - 8 : top + 19;
      chart.append(
        svg("path", { class: "limit", d: `M${across} ${top}v${height}` }),
        svg("text", { class: "halo", x: +across + 5, y: down }, mark.words),
      );
    }
    return chart;
  }

  /** Lines with their names, in words. */
  function legend(entries) {
    const line = (style) => svg("path", { class: `line ${style}`, d: "M1 4h32", "stroke-width": 2.5 });
    const sample = (style) => svg("svg", { viewBox: "0 0 34 8", "aria-hidden": "true" }, line(style));
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
        const opacity = (0.6 * Math.abs(up)).toFixed(2);
        const tip = `${(-hand * across).toFixed(1)} ${(-hand * up).toFixed(1)}`;
        picture.append(
          svg("rect", { ...box, class: `cell s${up < 0 ? 1 : 0}`, "fill-opacity": opacity }),
          svg("path", { class: "line s", "stroke-width": 2, d: `M${x} ${y}l${tip}` }),
        );
      }
      picture.append(svg("text", { class: "token", x, y: pairs * cell + 20, "text-anchor": "middle" }, token));
    });
    picture.append(
      svg("text", { x: left - 8, y: cell * 0.5 + 7, "text-anchor": "end" }, "fast"),
      svg("text", { x: left - 8, y: cell * (pairs - 0.5) + 7, "text-anchor": "end" }, "slow"),
    );
    return picture;
  }

  // The colours of a picture of numbers, one for each step of -255 to 255: orange below 0, blue above, the deeper
  // the farther from it. A pixel is one 32-bit number: opacity, blue, green, red.
  const ORANGE = 0x005ed5;
  const BLUE = 0xb27200;
  const COLOURS = Uint32Array.from({ length: 511 }, (_, i) => {
    const step = i - 255;
    return ((Math.abs(step) << 24) | (step < 0 ? ORANGE : BLUE)) >>> 0;
  });

  /** Draw rows of whole numbers from -255 to 255 on a canvas. */
  function paint(canvas, steps, rows, columns) {
    if (canvas.width !== columns) canvas.width = columns;
    if (canvas.height !== rows) canvas.height = rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < steps.length; i++) pixels[i] = COLOURS[steps[i] + 255];
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

  return { html, isNarrow, lineChart, legend, table, clockHands, paint, short, ratioSpread, crossover };
})();
