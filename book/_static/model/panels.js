// The panels of a model on the page. Each has
//   element      what is put into the page
//   draw()       shows model.answer
//   clear()      shows nothing, because there is no text or no model
// and, where it matters,
//   question()   what it needs to know of the worker beside the usual (worker.js, `read`)
//   words()      what it shows, in words, for the sentence below the panels
//   restart()    another scheme was chosen
//   further      what comes after all panels
// and gets the model (page.js) to ask for its text, its settings and its answer.
"use strict";

// eslint-disable-next-line no-unused-vars
const languageModelPanels = (() => {
  const { html, isNarrow, lineChart, legend, table, clockHands, paint, short } = languageModelCharts;
  const { SCHEMES, sign, percent, tenths, nats, average, largest } = languageModelControls;
  const { labelled, numbered, slider, button, fold } = languageModelControls;
  const models = languageModels(); // for what takes no time: probabilities
  const { ROPE_BASE, TRAIN_LENGTH } = models;
  const ENDS = [0, 1, 2, 4, 8].map((factor) => factor * TRAIN_LENGTH);
  const SPANS = ENDS.slice(1).map((end, i) => [ENDS[i], end]); // of positions, for the means of losses
  const heading = (words) => html("p", { class: "model-head" }, words);

  /** The text, each character as blue as the weight that the query gives to it, and the weights of all queries. */
  class AttentionPanel {
    constructor(model) {
      this.model = model;
      this.cells = []; // of each character: {node, words, depth, kind}, as they are shown
      this.strip = html("div", { class: "model-strip", role: "img" });
      this.map = html("canvas", { class: "model-map", role: "img" });
      this.strip.addEventListener("click", ({ target }) => {
        const m = this.cells.findIndex(({ node }) => node === target);
        if (m >= 0) model.choose(m);
      });
      const signs = "Underlined: written by the model. ␣ is a space, ⏎ the end of a line.";
      const framed = model.small ? "the character that attends to the others" : "the query";
      const blue = "Blue: the square root of the weight, so that small weights show.";
      const key = html("p", { class: "model-key" }, `${blue} Framed: ${framed}. ${signs}`);
      const axes = html("p", {}, "Each row is a query, each column a key.");
      const whole = html("div", { class: "model-whole" }, this.map, axes);
      const chosen = html(
        "div",
        { class: "model-row" },
        labelled("Layer", model.layer),
        labelled("Head", model.head),
        model.query.label,
      );
      this.element = html("section", { class: "attention" });
      if (model.small) {
        this.element.append(this.strip);
        const settings = fold("Layer, head, query and all weights", chosen, whole);
        this.further = html("div", { class: "model-further" }, key, settings);
      } else {
        const text = html("div", {}, this.strip, key);
        this.element.append(chosen, html("div", { class: "model-pictures" }, text, whole));
      }
      this.clear();
    }

    question() {
      return { map: true };
    }

    /** Show the text; of a character only what has changed. */
    drawText(symbols, look) {
      while (this.cells.length > symbols.length) this.cells.pop().node.remove();
      while (this.cells.length < symbols.length) {
        this.cells.push({ node: this.strip.appendChild(html("span")), words: "", depth: "", kind: "" });
      }
      this.cells.forEach((cell, n) => {
        const words = sign(symbols[n]);
        const { depth, kind } = look(n);
        if (cell.words !== words) cell.node.textContent = cell.words = words;
        if (cell.depth !== depth) cell.node.style.setProperty("--depth", (cell.depth = depth));
        if (cell.kind !== kind) cell.node.className = cell.kind = kind;
      });
    }

    draw() {
      const { answer, symbols, written } = this.model;
      this.drawText(symbols, (n) => {
        const weight = answer.weights[n - answer.start] ?? 0;
        const kinds = { unknown: answer.unknown[n], query: n === answer.m, written: written[n] };
        return {
          depth: (Math.round(20 * Math.sqrt(weight)) / 20).toFixed(2), // 0 to 1, the same for all heads
          kind: Object.keys(kinds).filter((kind) => kinds[kind]).join(" "),
        };
      });
      paint(this.map, answer.map, answer.n, answer.n);
      const label = "The text, each character as blue as the weight that the query gives to it.";
      this.strip.setAttribute("aria-label", `${label} ${this.words()}`);
      const whole = `Attention weights of all ${answer.n} queries of this head: a triangle, row by row.`;
      this.map.setAttribute("aria-label", whole);
    }

    clear() {
      const { symbols = [], written } = this.model;
      this.drawText(symbols, (n) => ({ depth: "0.00", kind: written[n] ? "written" : "" }));
      this.strip.setAttribute("aria-label", symbols.length ? "The text, without attention weights." : "No text.");
      paint(this.map, [], 1, 1);
      this.map.setAttribute("aria-label", "No attention weights.");
    }

    words() {
      const { answer, symbols, layer, head, small } = this.model;
      const keys = largest(answer.weights).slice(0, 3).map((i) => {
        const n = answer.start + i;
        const place = small ? (n === answer.m ? "(itself) " : `(${answer.m - n} back) `) : "";
        return `${small ? "" : `${n} `}“${sign(symbols[n])}” ${place}${tenths(answer.weights[i])}`;
      });
      const query = `“${sign(symbols[answer.m])}”`;
      if (small) return `At ${query} the model attends most to ${keys.join(", ")}.`;
      const place = `Layer ${+layer.value + 1}, head ${+head.value + 1}`;
      return `${place}: query ${answer.m} ${query} attends most to ${keys.join(", ")}.`;
    }
  }

  /** The most probable next characters, with temperature and top-k. */
  class NextPanel {
    static TOP_K = [1, 2, 3, 5, 10, 20, Infinity];

    constructor(model) {
      this.model = model;
      this.shown = model.small ? 6 : 8;
      const { TOP_K } = NextPanel;
      this.temperature = slider("Temperature", { max: 20, value: 10, describe: (tenths) => (tenths / 10).toFixed(1) });
      this.topK = slider("Top k", {
        max: TOP_K.length - 1,
        value: TOP_K.length - 1,
        describe: (i) => (TOP_K[i] === Infinity ? "all" : String(TOP_K[i])),
      });
      for (const { control } of [this.temperature, this.topK]) {
        control.addEventListener("input", () => {
          if (!model.current) return;
          this.draw();
          model.summarizeLater();
        });
      }
      this.list = html("ol", { class: "model-next" });
      const explanation =
        "A temperature below 1 makes probable characters more probable still; one above 1 evens the probabilities " +
        "out. With top k, only the k most probable characters can be drawn.";
      const settings = html("div", { class: "model-row" }, this.temperature.label, this.topK.label);
      this.element = html(
        "section",
        { class: "next" },
        heading("The next character"),
        this.list,
        fold("Temperature and top k", settings, html("p", {}, explanation)),
      );
    }

    /** The probabilities from which the next token is drawn. */
    probabilities(logits = this.model.answer.logits) {
      const topK = Math.min(NextPanel.TOP_K[this.topK.control.value], logits.length);
      return models.distribution(logits, { temperature: this.temperature.control.value / 10, topK });
    }

    /** The most probable next tokens: {symbol, share}. */
    best() {
      const shares = this.probabilities();
      const { symbols } = this.model.sizes;
      const possible = largest(shares).slice(0, this.shown).filter((token) => shares[token] > 0);
      return possible.map((token) => ({ symbol: token ? sign(symbols[token]) : "unknown", share: shares[token] }));
    }

    draw() {
      if (!this.model.answer.logits) {
        const reason = "No prediction: the text is longer than the table of positions.";
        this.list.replaceChildren(html("li", { class: "none" }, reason));
        return;
      }
      const best = this.best();
      if (this.list.querySelector(".none")) this.list.replaceChildren();
      while (this.list.children.length > best.length) this.list.lastChild.remove();
      best.forEach(({ symbol, share }, i) => {
        const row = this.list.children[i] ?? this.list.appendChild(html("li", {}, html("b"), html("i"), html("span")));
        const [name, bar, number] = row.children;
        name.textContent = symbol;
        bar.style.setProperty("--share", share.toFixed(4));
        number.textContent = percent(share);
      });
    }

    clear() {
      this.list.replaceChildren();
    }

    words() {
      if (!this.model.answer.logits) return "";
      const best = this.best().slice(0, 3).map(({ symbol, share }) => `“${symbol}” ${percent(share)}`);
      return `Next: ${best.join(", ")}.`;
    }
  }

  /** What position adds: the angles of RoPE, the biases of ALiBi and T5, or the vectors added to the input. */
  class PositionPanel {
    constructor(model) {
      this.model = model;
      this.picture = html("div", { class: "model-position" });
      this.caption = html("p");
      this.element = html("section", { class: "position" }, heading("What position adds"), this.picture, this.caption);
      this.addedKey = "";
    }

    /** What position adds does not depend on the text: it is asked once for each scheme and reach. */
    question() {
      const { symbols, scheme } = this.model;
      const reach = [2, 4, 8].map((factor) => factor * TRAIN_LENGTH).find((each) => symbols.length <= each);
      return this.addedKey === `${scheme} ${reach}` ? {} : { reach };
    }

    draw() {
      const { answer, scheme, head } = this.model;
      if (answer.position) {
        this.added = answer.position;
        this.addedKey = `${scheme} ${this.added.n}`;
      }
      const columns = this.columns();
      const drawn = `${this.addedKey} ${head.value} ${columns}`;
      if (this.drawn !== drawn) {
        this.drawn = drawn;
        const kinds = { none: "Nothing", rope: "Hands", alibi: "Biases", t5: "Biases" };
        this.picture.replaceChildren(...this[`draw${kinds[scheme] ?? "Vectors"}`](columns));
      }
      if (scheme === "rope") this.nameHands(columns);
    }

    clear() {
      this.addedKey = this.drawn = "";
      this.picture.replaceChildren();
      this.caption.textContent = "";
    }

    drawNothing() {
      this.caption.textContent =
        "Nothing. All that this model can learn about order comes from the causal mask, which decides how many " +
        "characters a query sees.";
      return [];
    }

    /** How many characters the picture of RoPE has, the query included. */
    columns() {
      const { answer } = this.model;
      return Math.min(isNarrow(this.picture) ? 11 : 20, answer.m - answer.start + 1);
    }

    drawHands(columns) {
      const { headDim, turned } = this.added;
      const distance = columns - 1;
      const turns = (pair) => (distance * ROPE_BASE ** ((-2 * pair) / headDim)) / (2 * Math.PI);
      const [fastest, slowest] = [turns(0).toFixed(2), turns(headDim / 2 - 1).toFixed(4)];
      this.caption.textContent =
        "For each character of distance from the query, each pair of a head's components rotates by its own angle. " +
        `${distance} characters back, the fastest pair has made ${fastest} turns, the slowest ${slowest}.`;
      return [clockHands(turned, headDim, Array(columns).fill(""), this.caption.textContent)];
    }

    /** The hands show distances, so only the characters below them change with the text. */
    nameHands(columns) {
      const { answer, symbols } = this.model;
      const first = answer.m - columns + 1;
      this.picture.querySelectorAll(".token").forEach((token, i) => {
        token.textContent = sign(symbols[first + i]);
      });
    }

    drawBiases() {
      const { n, bias } = this.added;
      const head = +this.model.head.value;
      const lines = numbered(this.model.sizes.nHeads).map(([h]) => ({
        points: Array.from({ length: n }, (_, d) => [d, bias[h * n + d]]),
        style: `s${h}`,
        width: h === head ? 4.5 : 1.5,
      }));
      const least = Math.min(...bias);
      const most = Math.max(...bias, 0);
      const [near, far] = [1, TRAIN_LENGTH - 1].map((d) => short(bias[head * n + d]));
      this.caption.textContent =
        `Head ${head + 1} adds ${near} to the score of the previous character, and ${far} at distance ` +
        `${TRAIN_LENGTH - 1}, the largest distance in training.`;
      const chart = lineChart({
        x: { from: 0, to: n - 1, label: "distance, in characters" },
        y: { from: least, to: most + (most - least) / 20, label: "added to the score" },
        marks: [{ x: TRAIN_LENGTH - 1, words: "trained up to here", low: true }],
        words: this.caption.textContent,
        narrow: isNarrow(this.picture),
        lines,
      });
      return [chart, legend(lines.map(({ style }, h) => [style, `head ${h + 1}`]))];
    }

    /** Components downwards, positions to the right. */
    drawVectors() {
      const { width, added } = this.added;
      const positions = added.length / width;
      const limit = added.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
      const steps = new Int16Array(added.length);
      for (let at = 0; at < positions; at++) {
        for (let i = 0; i < width; i++) {
          steps[i * positions + at] = Math.round((255 * added[at * width + i]) / limit);
        }
      }
      const end =
        this.model.scheme === "learned"
          ? "The table ends there."
          : `Positions from ${TRAIN_LENGTH} on did not occur in training.`;
      this.caption.textContent =
        `The vectors added to the input: a column for each position, from 0 on the left to ${positions - 1} on the ` +
        `right, and a row for each of the ${width} components. Blue is positive and orange negative, up to ` +
        `±${short(limit)} where the colour is deepest. ${end}`;
      const canvas = html("canvas", { class: "model-added", role: "img", "aria-label": this.caption.textContent });
      paint(canvas, steps, width, positions);
      return [canvas];
    }
  }

  /** The loss at each position, of one scheme or of all six. */
  class LossPanel {
    static HIGHEST = 8; // nats

    constructor(model) {
      this.model = model;
      this.chart = html("div", { class: "model-chart" });
      const region = { class: "model-table", tabindex: "0", role: "region", "aria-label": "Losses by position" };
      this.table = html("div", region);
      this.missing = html("p", { role: "status" });
      this.element = html(
        "section",
        { class: "loss" },
        heading("Loss at each position, in nats"),
        this.chart,
        this.table,
        this.missing,
        button("Compare all six schemes", () => this.compare()),
      );
    }

    question() {
      return { loss: true };
    }

    /** Compare the schemes on this text. An edit ends the comparison. */
    async compare() {
      const { text, context: room } = this.model;
      const compared = { text, room, losses: new Map() };
      this.compared = compared;
      this.missing.textContent = "";
      for (const [scheme, { name }] of Object.entries(SCHEMES)) {
        try {
          const { worker } = this.model;
          await worker.load(scheme);
          compared.losses.set(scheme, (await worker.ask("losses", { scheme, text, room })).losses);
        } catch (error) {
          this.missing.textContent += `${name} is missing. ${error.message} `;
        }
        if (this.compared === compared && this.model.text !== text) this.compared = undefined;
        if (this.compared !== compared) return;
        if (this.model.current) this.draw();
      }
    }

    /** The mean loss of each span. */
    spans(losses) {
      return SPANS.map(([from, to]) => average(losses.slice(from, to)));
    }

    /** The losses to be drawn: those compared, if they are still of this text and context. */
    shown() {
      const { text, context, scheme, answer } = this.model;
      const own = [scheme, answer.losses];
      if (this.compared?.text !== text) return new Map([own]);
      if (this.compared.room !== context) this.compare();
      return new Map([own, ...this.compared.losses]);
    }

    draw() {
      const { answer, scheme, room } = this.model;
      const shown = this.shown();
      const block = TRAIN_LENGTH / 2;
      const means = (losses) =>
        Array.from({ length: Math.ceil(losses.length / block) }, (_, i) => {
          const from = i * block;
          const to = Math.min(from + block, losses.length);
          return [(from + to - 1) / 2, average(losses.slice(from, to))];
        });
      const own = Array.from(answer.losses, (loss, i) => [i, loss]);
      const lines = [{ points: own, style: SCHEMES[scheme].style, dots: true }];
      const longestFirst = [...shown].sort(([, a], [, b]) => b.length - a.length); // the short on top
      for (const [name, losses] of longestFirst) {
        lines.push({ points: means(losses), style: SCHEMES[name].style, width: name === scheme ? 4.5 : 2 });
      }
      const chart = lineChart({
        x: { from: 0, to: Math.max(longestFirst[0][1].length - 1, 2 * TRAIN_LENGTH), label: "position, in characters" },
        y: { from: 0, to: LossPanel.HIGHEST, label: "loss, in nats" },
        marks: [{ x: TRAIN_LENGTH, words: "unseen in training" }],
        words: `Loss against position; lines are means over ${block} characters. ${this.words()}`,
        narrow: isNarrow(this.chart),
        lines,
      });
      const names = Array.from(shown.keys(), (name) => [SCHEMES[name].style, SCHEMES[name].name]);
      const above = answer.losses.some((loss) => loss > LossPanel.HIGHEST);
      const triangles = above ? [html("p", {}, `A triangle is a loss above ${LossPanel.HIGHEST}.`)] : [];
      this.chart.replaceChildren(chart, legend(names), ...triangles);
      const heads = ["scheme", ...SPANS.map(([from, to]) => `${from}–${to - 1}`)];
      const rows = Array.from(shown, ([name, losses]) => [SCHEMES[name].name, ...this.spans(losses).map(nats)]);
      const context = room.selectedOptions[0].textContent;
      this.table.replaceChildren(table(`Mean loss by position; context: ${context}`, heads, rows));
    }

    clear() {
      this.compared = undefined;
      this.chart.replaceChildren();
      this.table.replaceChildren();
      this.missing.textContent = "";
    }

    words() {
      const { answer, scheme, context } = this.model;
      const [within] = this.spans(answer.losses);
      const beyond = average(answer.losses.slice(TRAIN_LENGTH));
      const cut = context === TRAIN_LENGTH ? `, context cut to ${TRAIN_LENGTH}` : "";
      const mean = `Mean loss of ${SCHEMES[scheme].name}${cut}: ${nats(within)}`;
      if (!Number.isFinite(beyond)) return `${mean}.`;
      return `${mean} at positions 0 to ${TRAIN_LENGTH - 1}, ${nats(beyond)} from ${TRAIN_LENGTH} on.`;
    }
  }

  return { attention: AttentionPanel, next: NextPanel, position: PositionPanel, loss: LossPanel };
})();
