// A language model on the page: its controls, and the pictures of what the worker computes (worker.js).
//
// <div class="language-model" data-show="attention next" ...> becomes a model. Its attributes:
//   data-show      what is shown, in this order, some of: attention next position loss cache
//   data-text      the text at the beginning
//   data-scheme    the position scheme: none, sinusoidal, learned, rope, alibi or t5
//   data-room      "64" to cut the context to the training length
//   data-layer, data-head   counted from 1
//   data-title     the words above it
//   data-small     fold away what not everybody needs
// What the element held before is for readers without a script, and for paper.
"use strict";

(() => {
  const { html, lineChart, legend, table, clockHands, paint, short, crossover } = languageModelCharts;
  const folder = document.currentScript.src.replace(/[^/]*$/, "");
  const TRAIN_LENGTH = 64; // as in model.js
  const LONGEST = 512; // characters of a text
  const AT_A_TIME = 48; // characters that one press writes
  const PAUSE = 60; // milliseconds between two of them, so that the eye can follow
  const SHOWN = 8; // next tokens
  const HANDS = 20; // tokens in the picture of RoPE
  const SCHEMES = {
    none: ["no scheme", "s2"],
    sinusoidal: ["sinusoids", "s1"],
    learned: ["learned table", "s3"],
    rope: ["RoPE", "s0"],
    alibi: ["ALiBi", "s4"],
    t5: ["T5", "s5"],
  };
  const LENGTHS = [4, 8, 16, 32, 64, 128, 256, 512]; // at which both ways are timed
  const ROUNDS = 9;
  const TOP_K = [1, 2, 3, 5, 10, 20, Infinity];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const models = languageModels(); // for what takes no time: probabilities and draws

  // --- weights and the worker

  const arriving = new Map(); // scheme → promise of its stored weights
  const arrived = new Map();
  globalThis.registerLanguageModel = (stored) => arrived.get(stored.scheme)(stored);

  /** The stored weights of a model. They are a script, because a page in a folder may read nothing else. */
  function storedWeights(scheme) {
    if (!arriving.has(scheme)) {
      const promise = new Promise((resolve, reject) => {
        arrived.set(scheme, resolve);
        const script = html("script", { src: `${folder}${scheme}.js` });
        script.onerror = () => {
          arriving.delete(scheme); // the next try asks again
          reject(new Error(`The weights of ${SCHEMES[scheme][0]} could not be loaded. Choose the scheme again to retry.`));
        };
        document.head.append(script);
      });
      arriving.set(scheme, promise);
    }
    return arriving.get(scheme);
  }

  /** A worker and the questions that it has not answered yet. It is made from text, so it needs no file either. */
  class Helper {
    constructor() {
      const text = `"use strict";(${languageModelWorker})((${languageModels})(), self)`;
      this.worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      this.waiting = new Map();
      this.loaded = new Map(); // scheme → promise of its sizes
      this.worker.onmessage = ({ data }) => {
        const [resolve, reject] = this.waiting.get(data.id);
        this.waiting.delete(data.id);
        if (data.error) reject(new Error(data.error));
        else resolve(data);
      };
    }

    ask(what, message) {
      const id = (this.last = (this.last ?? 0) + 1);
      return new Promise((resolve, reject) => {
        this.waiting.set(id, [resolve, reject]);
        this.worker.postMessage({ id, what, ...message });
      });
    }

    load(scheme) {
      if (!this.loaded.has(scheme)) {
        const loading = storedWeights(scheme).then((stored) => this.ask("load", { stored }));
        loading.catch(() => this.loaded.delete(scheme));
        this.loaded.set(scheme, loading);
      }
      return this.loaded.get(scheme);
    }
  }

  // --- words

  const NAMES = { "\n": "⏎", " ": "␣", "\t": "⇥" };
  const sign = (symbol) => NAMES[symbol] ?? (/[\p{C}\p{Z}]/u.test(symbol) ? "�" : symbol);
  const percent = (share) => (share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`);
  const thousands = (number) => Math.round(number).toLocaleString("en");
  const average = (values) => {
    const known = Array.from(values).filter(Number.isFinite);
    return known.length ? known.reduce((a, b) => a + b) / known.length : NaN;
  };
  const nats = (loss) => (Number.isFinite(loss) ? loss.toFixed(2) : "–");

  // --- controls

  /** A control inside its label, which shows the value of a slider beside it. */
  function labelled(words, control, ...more) {
    return html("label", {}, html("span", {}, words), control, ...more);
  }

  function select(options, value) {
    const entry = ([key, words]) => html("option", { value: key }, words);
    const control = html("select", {}, ...options.map(entry));
    control.value = value;
    return control;
  }

  function slider(min, max, value, say) {
    const control = html("input", { type: "range", min, max, value });
    const shown = html("b", { "aria-hidden": "true" });
    control.say = () => {
      const words = say(+control.value);
      control.setAttribute("aria-valuetext", words);
      shown.textContent = words;
    };
    control.addEventListener("input", control.say);
    control.say();
    return [control, shown];
  }

  const numbered = (n) => Array.from({ length: n }, (_, i) => [i, String(i + 1)]);

  // --- the component

  class Model {
    constructor(place) {
      const { show, text, scheme, room, layer, head, title, small } = place.dataset;
      this.small = small !== undefined;
      this.shows = new Set((show ?? "attention next").split(" "));
      this.chance = models.chances(7);
      this.shownOnce = false;
      const instead = html("div", { class: "model-instead" }, ...place.childNodes);

      this.write = html("button", { type: "button", class: "main" }, "Write on");
      this.scheme = select(Object.entries(SCHEMES).map(([key, [words]]) => [key, words]), scheme ?? "rope");
      this.room = select([["all", "the whole text"], [TRAIN_LENGTH, `${TRAIN_LENGTH} characters at most`]], room ?? "all");
      this.text = html("textarea", { rows: small === undefined ? 3 : 2, maxlength: LONGEST, spellcheck: "false", autocomplete: "off" });
      this.text.value = text ?? "";
      this.layer = select(numbered(2), (layer ?? 2) - 1);
      this.head = select(numbered(4), (head ?? 1) - 1);
      [this.query, this.queryShown] = slider(0, 0, 0, (m) => `${m} “${sign(this.symbols?.[m] ?? "")}”`);
      [this.temperature, this.temperatureShown] = slider(0, 20, 10, (tenths) => (tenths / 10).toFixed(1));
      [this.topK, this.topKShown] = slider(0, TOP_K.length - 1, TOP_K.length - 1, (i) =>
        TOP_K[i] === Infinity ? "all" : String(TOP_K[i]),
      );
      this.note = html("p", { class: "model-note" });
      this.summary = html("output", { class: "model-summary" });
      this.about = html("p", { class: "model-about" }, "Loading the weights …");
      this.panels = html("div", { class: "model-panels" });

      const bar = html("div", { class: "model-bar" }, this.write, labelled("Position", this.scheme));
      if (this.shows.has("loss") || room) bar.append(labelled("Context", this.room));
      place.replaceChildren(
        html("p", { class: "model-title" }, html("strong", {}, title ?? "A small language model, running on this page")),
        bar,
        html("label", { class: "model-text" }, html("span", {}, `Your text, up to ${LONGEST} characters`), this.text),
        this.note,
        this.panels,
        this.summary,
        this.about,
        instead,
      );
      for (const name of this.shows) this.panels.append(this[`${name}Panel`]());
      place.classList.add("running");

      this.write.addEventListener("click", () => (this.writing ? this.stop() : this.writeOn()));
      this.text.addEventListener("input", () => {
        this.stop();
        this.query.value = LONGEST; // the last character again
        this.refresh();
      });
      this.scheme.addEventListener("change", () => this.change());
      for (const each of [this.room, this.layer, this.head]) each.addEventListener("change", () => this.refresh());
      this.query.addEventListener("input", () => this.refresh());
      for (const each of [this.temperature, this.topK]) each.addEventListener("input", () => this.answer && this.drawNext());
    }

    /** Called once, when the page is complete or the model comes into view. */
    start() {
      if (this.worker) return;
      try {
        this.worker = new Helper();
      } catch {
        this.complain("This browser does not let the page start a worker, so the model cannot run.");
        return;
      }
      this.refresh();
    }

    change() {
      this.stop();
      this.times?.clear();
      this.measured = undefined;
      this.compared = undefined;
      this.refresh();
    }

    get context() {
      return this.room.value === "all" ? Infinity : +this.room.value;
    }

    complain(words) {
      this.about.textContent = words;
      this.about.classList.add("problem");
    }

    // --- reading: one question at a time, and of those that came meanwhile only the last

    async refresh() {
      this.start();
      if (this.asking) {
        this.again = true;
        return this.asking;
      }
      this.asking = (async () => {
        do {
          this.again = false;
          try {
            await this.read();
          } catch (error) {
            this.complain(error.message);
            this.stop();
          }
        } while (this.again);
        this.asking = undefined;
      })();
      return this.asking;
    }

    async read() {
      const scheme = this.scheme.value;
      const sizes = await this.worker.load(scheme);
      this.sizes = sizes;
      this.symbols = Array.from(this.text.value).slice(0, LONGEST);
      if (!this.symbols.length) return this.drawNothing();
      const query = +this.query.value >= +this.query.max ? undefined : +this.query.value;
      this.answer = await this.worker.ask("read", {
        ...{ scheme, text: this.symbols.join(""), room: this.context, query },
        ...{ layer: +this.layer.value, head: +this.head.value },
        map: this.shows.has("attention"),
        position: this.shows.has("position"),
      });
      this.draw();
    }

    drawNothing() {
      this.answer = undefined;
      this.note.textContent = "There is no text. Type something: a model needs one character at least.";
      for (const picture of this.panels.querySelectorAll(".model-strip, .model-next")) picture.replaceChildren();
    }

    draw() {
      const { answer, symbols, sizes } = this;
      this.query.max = answer.n - 1;
      this.query.value = answer.m;
      this.query.say();
      this.drawNote();
      if (this.shows.has("attention")) this.drawAttention();
      if (this.shows.has("next")) this.drawNext();
      if (this.shows.has("position")) this.drawPosition();
      if (this.shows.has("loss")) this.drawLoss();
      if (this.shows.has("cache")) this.drawCache();
      this.about.classList.remove("problem");
      this.about.textContent =
        `${thousands(sizes.weights)} weights, ${sizes.nLayers} layers of ${sizes.nHeads} heads, one token per character, trained on ` +
        `${TRAIN_LENGTH} characters at a time. It runs in your browser, and what you type stays on this page.`;
      // Said when the reader pauses, not at each key.
      clearTimeout(this.saying);
      this.saying = setTimeout(() => (this.summary.textContent = this.words()), this.shownOnce ? 500 : 0);
      this.shownOnce = true;
      this.panels.dataset.length = symbols.length;
    }

    drawNote() {
      const { answer, symbols } = this;
      const unknown = [...new Set(symbols.filter((_, i) => answer.unknown[i]))].map((symbol) => `“${sign(symbol)}”`);
      const notes = [];
      if (unknown.length) {
        notes.push(`The model does not know ${unknown.slice(0, 6).join(", ")}: it reads one and the same token for all of these.`);
      }
      if (answer.n < symbols.length) {
        notes.push(`The table has a vector for ${answer.n} positions, 0 to ${answer.n - 1}: what comes after them cannot be read.`);
      }
      if (symbols.length === LONGEST) notes.push(`The text is as long as it may be here: ${LONGEST} characters.`);
      this.note.textContent = notes.join(" ");
    }

    /** What the pictures show, in words. */
    words() {
      const { answer, symbols } = this;
      if (!answer) return "";
      const said = [];
      if (this.shows.has("attention")) said.push(this.attentionWords());
      if (answer.logits && (this.shows.has("next") || this.shows.has("attention"))) {
        const best = this.best().slice(0, 3);
        said.push(`Next: ${best.map(([symbol, share]) => `“${symbol}” ${percent(share)}`).join(", ")}.`);
      }
      if (this.shows.has("loss")) said.push(this.lossWords());
      if (this.shows.has("cache") && this.cacheSaid) said.push(this.cacheSaid);
      return said.join(" ") || `${symbols.length} characters.`;
    }

    // --- attention

    attentionPanel() {
      this.strip = html("div", { class: "model-strip", role: "img", "aria-label": "The text, not read yet" });
      this.map = html("canvas", { class: "model-map", role: "img", "aria-label": "Attention weights, not computed yet" });
      const chosen = html(
        "div",
        { class: "model-row" },
        labelled("Layer", this.layer),
        labelled("Head", this.head),
        labelled("Query", this.query, this.queryShown),
      );
      this.strip.addEventListener("click", ({ target }) => {
        const m = [...this.strip.children].indexOf(target);
        if (m >= 0) {
          this.query.value = m;
          this.refresh();
        }
      });
      const fold = html("details", { class: "model-fold" }, html("summary", {}, "Layer, head and query"), chosen);
      const maps = html("div", { class: "model-whole" }, this.map, html("p", {}, "rows: queries, columns: keys"));
      const pictures = html("div", { class: "model-pictures" }, this.strip, maps);
      return html("section", { class: "attention" }, ...(this.small ? [pictures, fold] : [chosen, pictures]));
    }

    attentionWords() {
      const { answer, symbols } = this;
      const order = Array.from(answer.weights.keys()).sort((a, b) => answer.weights[b] - answer.weights[a]);
      const keys = order.slice(0, 3).map((i) => {
        const n = answer.start + i;
        return `${n} “${sign(symbols[n])}” ${percent(answer.weights[i])}`;
      });
      return (
        `Layer ${+this.layer.value + 1}, head ${+this.head.value + 1}: ` +
        `query ${answer.m} “${sign(symbols[answer.m])}” attends most to ${keys.join(", ")}.`
      );
    }

    drawAttention() {
      const { answer, symbols, strip } = this;
      while (strip.children.length > symbols.length) strip.lastChild.remove();
      const deepest = answer.weights.reduce((a, b) => Math.max(a, b));
      symbols.forEach((symbol, n) => {
        const cell = strip.children[n] ?? strip.appendChild(html("span"));
        const words = sign(symbol);
        if (cell.textContent !== words) cell.textContent = words;
        const weight = n >= answer.start && n <= answer.m ? answer.weights[n - answer.start] : 0;
        const depth = (0.6 * Math.sqrt(weight / deepest)).toFixed(2);
        const kind = [
          answer.unknown[n] ? "unknown" : "",
          n === answer.m ? "query" : "",
        ].join(" ");
        if (cell.depth !== depth) cell.style.setProperty("--depth", (cell.depth = depth));
        if (cell.className !== kind) cell.className = kind;
      });
      strip.setAttribute("aria-label", `The text, each character as dark as the weight that the query gives to it. ${this.attentionWords()}`);
      paint(this.map, answer.map, answer.n, answer.n, { limit: 1, root: true });
      this.map.setAttribute("aria-label", `Attention weights of all ${answer.n} queries of this head: a triangle, row by row.`);
    }

    // --- the next token

    nextPanel() {
      this.next = html("ol", { class: "model-next" });
      const settings = html(
        "div",
        { class: "model-row" },
        labelled("Temperature", this.temperature, this.temperatureShown),
        labelled("Top k", this.topK, this.topKShown),
      );
      const fold = html("details", { class: "model-fold" }, html("summary", {}, "Temperature and top k"), settings);
      return html("section", { class: "next" }, html("p", { class: "model-head" }, "The next character"), this.next, fold);
    }

    probabilities(logits = this.answer.logits) {
      return models.distribution(logits, { temperature: this.temperature.value / 10, topK: Math.min(TOP_K[this.topK.value], logits.length) });
    }

    /** The most probable next tokens: [sign, probability]. */
    best() {
      const shares = this.probabilities();
      const order = Array.from(shares.keys()).sort((a, b) => shares[b] - shares[a]);
      return order.slice(0, SHOWN).map((token) => [token ? sign(this.sizes.symbols[token]) : "unknown", shares[token]]);
    }

    drawNext() {
      if (!this.answer.logits) {
        this.next.replaceChildren(html("li", {}, "no prediction: the text is longer than the table"));
        return;
      }
      this.best().forEach(([symbol, share], i) => {
        const row = this.next.children[i] ?? this.next.appendChild(html("li", {}, html("b"), html("i"), html("span")));
        if (row.children.length < 3) row.replaceChildren(html("b"), html("i"), html("span"));
        const [name, bar, number] = row.children;
        name.textContent = symbol;
        bar.style.setProperty("--share", share.toFixed(4));
        number.textContent = percent(share);
      });
    }

    // --- writing

    async writeOn() {
      this.writing = true;
      this.write.textContent = "Stop";
      const run = (this.run = Symbol("run"));
      await this.refresh();
      for (let i = 0; i < AT_A_TIME && this.run === run; i++) {
        const begun = performance.now();
        const logits = this.shows.has("cache") ? await this.timedStep(run) : this.answer?.logits;
        if (this.run !== run || !logits || this.symbols.length >= LONGEST) break;
        const token = models.draw(this.probabilities(logits), this.chance());
        this.text.value += token ? this.sizes.symbols[token] : "�";
        this.text.scrollTop = this.text.scrollHeight;
        this.query.value = this.query.max;
        // With reduced motion only the result is shown.
        if (!still.matches || i === AT_A_TIME - 1 || this.shows.has("cache")) await this.refresh();
        else await this.readQuietly();
        await new Promise((go) => setTimeout(go, still.matches ? 0 : PAUSE - Math.min(performance.now() - begun, PAUSE)));
      }
      if (this.run === run) this.stop();
      await this.refresh();
    }

    async readQuietly() {
      this.symbols = Array.from(this.text.value);
      const message = { scheme: this.scheme.value, text: this.text.value, room: this.context, layer: 0, head: 0 };
      this.answer = await this.worker.ask("read", message);
    }

    stop() {
      this.run = undefined;
      this.writing = false;
      this.write.textContent = "Write on";
    }

    // --- what position adds

    positionPanel() {
      this.position = html("div", { class: "model-position" });
      this.positionWords = html("p");
      return html("section", { class: "position" }, html("p", { class: "model-head" }, "What position adds"), this.position, this.positionWords);
    }

    drawPosition() {
      const { position, m, start } = this.answer;
      const { headDim, width, n } = position;
      const head = +this.head.value;
      const picture = [];
      let words;
      if (this.scheme.value === "rope") {
        const first = Math.max(start, m - HANDS + 1);
        const tokens = this.symbols.slice(first, m + 1).map(sign);
        const distance = m - first;
        const turns = (pair) => ((distance * 10000 ** ((-2 * pair) / headDim)) / (2 * Math.PI)).toFixed(pair ? 4 : 2);
        words =
          `Each pair of a head's numbers is rotated by its own angle for each character of distance from the query ${m}. ` +
          `${distance} characters back, the fastest pair has made ${turns(0)} turns, the slowest ${turns(headDim / 2 - 1)}.`;
        picture.push(clockHands(position.turned, headDim, tokens, words));
      } else if (this.scheme.value === "alibi" || this.scheme.value === "t5") {
        const line = (h) => Array.from({ length: n }, (_, d) => [d, position.bias[h * n + d]]);
        const lines = numbered(this.sizes.nHeads).map(([h]) => ({ points: line(h), style: `s${h}`, width: h === head ? 4.5 : 1.5 }));
        const least = Math.min(...position.bias);
        const most = Math.max(...position.bias, 0);
        const values = [1, TRAIN_LENGTH - 1].map((d) => short(position.bias[head * n + d]));
        words =
          `Head ${head + 1} adds ${values[0]} to the score of the character before, and ${values[1]} at distance ${TRAIN_LENGTH - 1}, ` +
          "the largest of the training.";
        picture.push(
          lineChart({
            x: { from: 0, to: n - 1, label: "distance, in characters" },
            y: { from: least, to: most + (most - least) / 20, label: "added to the score" },
            marks: [{ x: TRAIN_LENGTH - 1, words: "trained up to here", low: true }],
            ...{ lines, words },
          }),
          legend(lines.map(({ style }, h) => [style, `head ${h + 1}`])),
        );
      } else if (this.scheme.value === "none") {
        words = "Nothing. The model knows of the order only what the causal mask reveals: how many characters a query sees.";
      } else {
        const rows = position.added.length / width;
        const canvas = html("canvas", { class: "model-added", role: "img" });
        const turned = new Float32Array(position.added.length); // components downwards, positions to the right
        for (let at = 0; at < rows; at++) for (let i = 0; i < width; i++) turned[i * rows + at] = position.added[at * width + i];
        const limit = turned.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
        paint(canvas, turned, width, rows, { limit });
        words =
          `The vector that is added to the input at each position, from 0 at the left to ${rows - 1} at the right; ` +
          `its ${width} components from top to bottom, blue above 0 and orange below, the deepest ${short(limit)}. ` +
          (this.scheme.value === "learned" ? "The table ends there." : `Positions from ${TRAIN_LENGTH} on did not occur in training.`);
        canvas.setAttribute("aria-label", words);
        picture.push(canvas);
      }
      this.position.replaceChildren(...picture);
      this.positionWords.textContent = words;
    }

    // --- loss by position

    lossPanel() {
      this.lossChart = html("div", { class: "model-chart" });
      this.lossTable = html("div", { class: "model-table", tabindex: "0", role: "region", "aria-label": "Losses by position" });
      const compare = html("button", { type: "button" }, "Compare all six schemes");
      compare.addEventListener("click", () => this.compare());
      return html(
        "section",
        { class: "loss" },
        html("p", { class: "model-head" }, "Loss at each position, in nats"),
        ...[this.lossChart, this.lossTable, compare],
      );
    }

    async compare() {
      const text = this.symbols.join("");
      const room = this.context;
      const compared = { text, room, losses: new Map() };
      for (const scheme of Object.keys(SCHEMES)) {
        try {
          await this.worker.load(scheme);
          compared.losses.set(scheme, (await this.worker.ask("losses", { scheme, text, room })).losses);
        } catch (error) {
          this.complain(error.message);
        }
        this.compared = compared;
        await this.refresh();
      }
    }

    /** Means of the losses in the spans that end at 1, 2, 4 and 8 times the training length. */
    spans(losses) {
      const ends = [0, 1, 2, 4, 8].map((factor) => factor * TRAIN_LENGTH);
      return ends.slice(1).map((end, i) => average(losses.slice(ends[i], end)));
    }

    lossWords() {
      const [within, ...beyond] = this.spans(this.answer.losses);
      const far = average(this.answer.losses.slice(TRAIN_LENGTH));
      const name = SCHEMES[this.scheme.value][0];
      const cut = this.context === TRAIN_LENGTH ? `, context cut to ${TRAIN_LENGTH}` : "";
      if (!beyond.some(Number.isFinite)) return `Mean loss of ${name}${cut}: ${nats(within)}.`;
      return `Mean loss of ${name}${cut}: ${nats(within)} at positions 0 to ${TRAIN_LENGTH - 1}, ${nats(far)} from ${TRAIN_LENGTH} on.`;
    }

    drawLoss() {
      const { losses } = this.answer;
      const scheme = this.scheme.value;
      // Of another text or context, what was compared is no longer true.
      const same = this.compared?.text === this.symbols.join("") && this.compared.room === this.context;
      const all = same ? this.compared.losses : new Map([[scheme, losses]]);
      const block = TRAIN_LENGTH / 2;
      const means = (values) =>
        Array.from({ length: Math.ceil(values.length / block) }, (_, i) => {
          const from = i * block;
          const to = Math.min(from + block, values.length);
          return [(from + to - 1) / 2, average(values.slice(from, to))];
        });
      const lines = [...all].map(([name, values]) => ({
        ...{ points: means(values), style: SCHEMES[name][1], width: name === scheme ? 4.5 : 2 },
      }));
      const own = { points: Array.from(losses, (loss, i) => [i, loss]), style: SCHEMES[scheme][1], dots: 2 };
      const words = `Loss against position; lines are means over ${block} characters. ${this.lossWords()}`;
      this.lossChart.replaceChildren(
        lineChart({
          x: { from: 0, to: Math.max(losses.length - 1, 2 * TRAIN_LENGTH), label: "position, in characters" },
          y: { from: 0, to: 8, label: "loss, in nats" },
          lines: [own, ...lines],
          marks: [{ x: TRAIN_LENGTH, words: "never trained" }],
          words,
        }),
        legend([...all.keys()].map((name) => [SCHEMES[name][1], SCHEMES[name][0]])),
      );
      const heads = ["scheme", "0–63", "64–127", "128–255", "256–511"];
      const rows = [...all].map(([name, values]) => [SCHEMES[name][0], ...this.spans(values).map(nats)]);
      const context = this.room.selectedOptions[0].textContent;
      this.lossTable.replaceChildren(table(`Mean loss by position; context: ${context}`, heads, rows));
    }

    // --- the cache

    cachePanel() {
      this.times = new Map(); // "cached 87" → {ms, operations}
      this.cached = select([["cached", "with the cache"], ["uncached", "without it"]], "cached");
      this.quantity = select([["ms", "milliseconds"], ["operations", "operations"]], "ms");
      this.counter = html("p", { class: "model-counter" }, "Press “Write on”: each character is counted and timed here.");
      this.cacheChart = html("div", { class: "model-chart" });
      this.cacheTable = html("div", { class: "model-table", tabindex: "0", role: "region", "aria-label": "Measured times" });
      this.verdict = html("p", { class: "model-counter" });
      this.measure = html("button", { type: "button" }, "Measure both ways");
      this.save = html("button", { type: "button", disabled: "" }, "Download the record (JSON)");
      this.measure.addEventListener("click", () => this.measureBoth());
      this.save.addEventListener("click", () => this.download());
      this.quantity.addEventListener("change", () => this.drawCache());
      const row = html("div", { class: "model-row" }, labelled("Write", this.cached), labelled("Draw", this.quantity));
      const buttons = html("div", { class: "model-bar" }, this.measure, this.save);
      return html(
        "section",
        { class: "cache" },
        html("p", { class: "model-head" }, "What each character costs"),
        ...[row, this.counter, this.cacheChart, buttons, this.verdict],
        html("details", { class: "model-fold" }, html("summary", {}, "The numbers"), this.cacheTable),
      );
    }

    /** The logits after the text, computed in the chosen way; the time goes to the chart. */
    async timedStep(run) {
      this.symbols = Array.from(this.text.value);
      const way = this.cached.value;
      let step;
      try {
        step = await this.worker.ask("step", { scheme: this.scheme.value, text: this.text.value, cached: way === "cached" });
      } catch (error) {
        this.complain(error.message);
        return null;
      }
      if (this.run !== run) return null;
      this.times.set(`${way} ${step.length}`, step);
      const held = step.bytes ? ` The cache holds ${thousands(step.bytes)} bytes of keys and values.` : " Nothing is kept.";
      this.cacheSaid = `Character ${step.length}: ${thousands(step.operations)} operations, ${step.ms.toFixed(2)} ms.${held}`;
      this.counter.textContent = this.cacheSaid;
      return step.logits;
    }

    async measureBoth() {
      this.stop();
      this.measure.disabled = true;
      const scheme = this.scheme.value;
      try {
        await this.worker.load(scheme);
        const reach = scheme === "learned" ? TRAIN_LENGTH : LONGEST;
        const measured = { scheme, lengths: [], uncached: [], cached: [], operations: { uncached: [], cached: [] } };
        for (const length of LENGTHS.filter((each) => each <= reach)) {
          this.verdict.textContent = `Measuring ${length} characters …`;
          const both = await this.worker.ask("measure", { scheme, length, rounds: ROUNDS });
          measured.lengths.push(length);
          for (const way of ["uncached", "cached"]) {
            measured[way].push(both[way]);
            measured.operations[way].push(both.operations[way]);
          }
          if (this.scheme.value !== scheme) return;
          this.measured = measured;
          this.drawCache();
        }
        this.verdict.textContent = "Measuring the speed of a copy and of the model's products …";
        Object.assign(measured, await this.worker.ask("ceilings", { scheme }));
        const first = crossover(measured.lengths, measured.uncached, measured.cached);
        this.verdict.textContent =
          first === null
            ? "Here the cache pays at none of these lengths: the middle half of the ratios reaches down to 1.2 or less at the longest."
            : `Here the cache pays from ${first} characters on: there, and at each longer text, a character takes at least 1.2 times as long ` +
              "without it, in three quarters of the rounds.";
        this.save.disabled = false;
        this.cacheSaid = this.verdict.textContent;
        this.drawCache();
        this.summary.textContent = this.words();
      } catch (error) {
        this.complain(error.message);
      } finally {
        this.measure.disabled = false;
      }
    }

    drawCache() {
      const { times, measured } = this;
      const quantity = this.quantity.value;
      const middle = (samples) => 1000 * samples.toSorted((a, b) => a - b)[samples.length >> 1];
      const points = { uncached: [], cached: [] };
      for (const [key, step] of times) points[key.split(" ")[0]].push([step.length, step[quantity]]);
      const curve = (way) =>
        (measured?.lengths ?? []).map((length, i) => [length, quantity === "ms" ? middle(measured[way][i]) : measured.operations[way][i]]);
      const lines = ["uncached", "cached"].flatMap((way, i) => [
        { points: points[way], style: `s${1 - i}`, dots: 2.5 },
        { points: curve(way), style: `s${1 - i}` },
      ]);
      const values = lines.flatMap((line) => line.points.map(([, value]) => value)).filter((value) => value > 0);
      const [least, most] = values.length ? [Math.min(...values), Math.max(...values)] : [0.1, 10];
      this.cacheChart.replaceChildren(
        lineChart({
          x: { from: LENGTHS[0], to: LONGEST, log: 2, label: "characters in the text" },
          y: { from: least / 2, to: most * 2, log: 10, label: quantity === "ms" ? "ms per character" : "operations" },
          lines,
          words: `What a character costs, with and without the cache, against the length of the text. ${this.verdict.textContent}`,
        }),
        legend([["s1", "without the cache"], ["s0", "with the cache"]]),
      );
      if (!measured) return this.cacheTable.replaceChildren("Nothing has been measured yet.");
      const rows = measured.lengths.map((length, i) => [
        String(length),
        ...["uncached", "cached"].map((way) => middle(measured[way][i]).toFixed(3)),
        ...["uncached", "cached"].map((way) => thousands(measured.operations[way][i])),
        thousands(length * this.bytesPerToken()),
      ]);
      const heads = ["characters", "ms without", "ms with", "operations without", "operations with", "bytes in the cache"];
      this.cacheTable.replaceChildren(table(`Medians of ${ROUNDS} rounds`, heads, rows));
    }

    bytesPerToken() {
      return 2 * this.sizes.nLayers * this.sizes.width * 4;
    }

    /** A record as benchmarks/kv_cache.py makes them: chapter 10 draws it from benchmarks/results. */
    record() {
      const { measured, sizes } = this;
      const { nLayers, nHeads, width, headDim, symbols } = sizes;
      return {
        device: `A browser with ${navigator.hardwareConcurrency} processors`,
        device_type: "cpu",
        versions: { python: "none", torch: "none", browser: navigator.userAgent },
        date: new Date().toISOString().slice(0, 10),
        commit: "a page of the book",
        dtype: "float32",
        bandwidth: measured.bandwidth,
        throughput: measured.throughput,
        runs: [
          {
            model: {
              ...{ name: SCHEMES[measured.scheme][0], n_layers: nLayers, d_model: width, n_heads: nHeads, n_kv_heads: nHeads },
              ...{ head_dim: headDim, vocab_size: symbols.length, n_weights: nLayers * 12 * width * width },
            },
            batch_size: 1,
            ...{ lengths: measured.lengths, uncached: measured.uncached, cached: measured.cached },
          },
        ],
      };
    }

    download() {
      const file = new Blob([JSON.stringify(this.record(), null, 1)], { type: "application/json" });
      const link = html("a", { href: URL.createObjectURL(file), download: "kv_cache_browser.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }
  }

  // --- start: on the first page when everything else is done, elsewhere when the model comes near

  const places = document.querySelectorAll(".language-model");
  for (const place of places) {
    const model = new Model(place);
    const soon = () => (globalThis.requestIdleCallback ?? setTimeout)(() => model.start());
    const near = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        near.disconnect();
        if (document.readyState === "complete") soon();
        else addEventListener("load", soon, { once: true });
      },
      { rootMargin: "300px" },
    );
    near.observe(place);
  }
})();
