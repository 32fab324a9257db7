// A language model on the page: its text, its settings, and the panels that show what the worker computes.
//
// <div class="language-model" data-show="attention next" ...> becomes a model. Its attributes:
//   data-show      the panels, in this order, some of: attention next position loss cache
//   data-text      the text at the beginning
//   data-scheme    the position scheme: none, sinusoidal, learned, rope, alibi or t5
//   data-room      "64" to cut the context to the training length, "all" to offer the choice
//   data-layer, data-head   counted from 1
//   data-query     the position of the query, counted from 0; without it the last character
//   data-title     the words above it
//   data-small     fold away what not everybody needs
// What the element held before is for readers without a script, and for paper.
"use strict";

(() => {
  const { html } = languageModelCharts;
  const { SCHEMES, sign, thousands, labelled, select, offer, slider, button, fold } = languageModelControls;
  const models = languageModels(); // for what takes no time: draws
  const { TRAIN_LENGTH } = models;
  const LONGEST = 512; // characters of a text
  const AT_A_TIME = 48; // characters that one press writes
  const PAUSE = 60; // milliseconds between two of them, so that the eye can follow
  const UNKNOWN = "�";
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const delay = (ms) => new Promise((go) => setTimeout(go, ms));

  /** Carry marks of characters over to an edited text: what was inserted is not marked. */
  function carry(marks, before, after) {
    const shorter = Math.min(before.length, after.length);
    let head = 0;
    while (head < shorter && before[head] === after[head]) head++;
    let tail = 0;
    while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
    const inserted = Array(after.length - head - tail).fill(false);
    return [...marks.slice(0, head), ...inserted, ...marks.slice(marks.length - tail)];
  }

  class Model {
    #worker;

    constructor(place) {
      const { show = "attention next", text = "", scheme = "rope", layer = 2, head = 1 } = place.dataset;
      const { room, query, title = "A small language model, running on this page", small } = place.dataset;
      this.place = place;
      this.small = small !== undefined;
      this.symbols = Array.from(text);
      this.written = this.symbols.map(() => false); // whether the model wrote this character
      this.wanted = query === undefined ? undefined : +query; // the query; undefined: the last character
      this.earlier = []; // the texts before each press of "Write on" since the last edit
      this.chance = models.chances(7);

      this.makeControls({ text, scheme, room, layer, head });
      this.panels = show.split(" ").map((name) => new languageModelPanels[name](this));
      this.next = this.panels.find((panel) => panel.probabilities) ?? new languageModelPanels.next(this);
      this.cache = this.panels.find((panel) => panel.step);
      this.note = html("p", { class: "model-note" });
      this.problem = html("div", { class: "model-problem", role: "alert" });
      this.summary = html("output", { class: "model-summary" }, "Loading the model …");
      this.about = html("p", { class: "model-about" });
      this.assemble(title, room);
    }

    makeControls({ text, scheme, room, layer, head }) {
      const described = ({ name, mechanism }) => (mechanism ? `${name} (${mechanism})` : name);
      this.schemes = select(Object.entries(SCHEMES).map(([key, each]) => [key, described(each)]), scheme);
      const rooms = [["all", "the whole text"], [TRAIN_LENGTH, `${TRAIN_LENGTH} characters at most`]];
      this.room = select(rooms, room ?? "all");
      this.layer = select([[layer - 1, layer]], layer - 1); // the others when the sizes of the model are known
      this.head = select([[head - 1, head]], head - 1);
      this.query = slider("Query", {
        max: Math.max(this.symbols.length - 1, 0),
        value: this.wanted ?? LONGEST,
        describe: (m) => (m in this.symbols ? `${m} “${sign(this.symbols[m])}”` : "–"),
      });
      const rows = this.small ? 2 : 3;
      this.area = html("textarea", { rows, spellcheck: "false", autocomplete: "off" });
      this.area.value = text;
      this.write = button("Write on", () => (this.writing ? this.stop() : this.writeOn()), { class: "main" });

      this.area.addEventListener("input", () => {
        this.earlier = [];
        this.edit();
      });
      this.area.addEventListener("keydown", (event) => this.undo(event));
      this.schemes.addEventListener("change", () => this.restart());
      for (const each of [this.room, this.layer, this.head]) each.addEventListener("change", () => this.refresh());
      this.query.control.addEventListener("input", () => this.choose(+this.query.control.value));
    }

    assemble(title, room) {
      const { place } = this;
      const outer = place.closest("section")?.querySelector("h1, h2, h3, h4")?.tagName[1] ?? 1;
      const name = html("span", { role: "heading", "aria-level": +outer + 1 }, title);
      const bar = html("div", { class: "model-bar" }, this.write, labelled("Position scheme", this.schemes));
      if (room) bar.append(labelled("Context", this.room));
      const words = html("span", {}, `Your text, up to ${LONGEST} characters`);
      const further = this.panels.map((panel) => panel.further).filter(Boolean);
      const instead = html("div", { class: "model-instead" }, ...place.childNodes);
      place.replaceChildren(
        html("p", { class: "model-title" }, html("strong", {}, name)),
        bar,
        html("label", { class: "model-text" }, words, this.area),
        this.note,
        this.problem,
        html("div", { class: "model-panels" }, ...this.panels.map((panel) => panel.element), ...further),
        this.summary,
        this.small ? fold("About this model", this.about) : this.about,
        instead,
      );
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", title);
      place.classList.add("running");
    }

    get scheme() {
      return this.schemes.value;
    }

    get text() {
      return this.symbols.join("");
    }

    get context() {
      return this.room.value === "all" ? Infinity : +this.room.value;
    }

    /** The worker, which starts when it is first needed. */
    get worker() {
      this.#worker ??= new languageModelLoading.Helper();
      return this.#worker;
    }

    // --- the text and the settings

    edit() {
      this.stop();
      const symbols = Array.from(this.area.value);
      this.left = Math.max(symbols.length - LONGEST, 0);
      this.setText(symbols.slice(0, LONGEST));
      if (this.left) {
        const caret = this.area.selectionStart;
        this.area.value = this.text; // moves the caret to the end
        this.area.setSelectionRange(caret, caret);
      }
      this.wanted = undefined; // the last character again
      this.refresh();
    }

    setText(symbols) {
      this.written = carry(this.written, this.symbols, symbols);
      this.symbols = symbols;
    }

    append(symbol) {
      this.symbols.push(symbol);
      this.written.push(true);
      this.area.value = this.text;
      this.area.scrollTop = this.area.scrollHeight;
    }

    /** Undo what the model wrote, press by press: of that the browser's own undo knows nothing. */
    undo(event) {
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (!isUndo || !this.earlier.length) return;
      event.preventDefault();
      this.area.value = this.earlier.pop();
      this.edit();
    }

    /** Another query: its weights are in the answer that is shown, or in the one that is on its way. */
    choose(m) {
      this.wanted = m === this.symbols.length - 1 ? undefined : m;
      if (this.current) this.draw();
      else this.refresh();
    }

    /** Another scheme. */
    restart() {
      this.stop();
      for (const panel of this.panels) panel.restart?.();
      this.refresh();
    }

    // --- reading

    /** What the worker is asked about. An answer carries it, and is shown only as long as nothing of it has changed. */
    get request() {
      const place = { layer: +this.layer.value, head: +this.head.value };
      return { scheme: this.scheme, text: this.text, room: this.context, ...place };
    }

    /** Whether an answer is about the text and the settings as they are now. */
    fits(answer) {
      return Object.entries(this.request).every(([name, value]) => answer.request[name] === value);
    }

    /** The answer, unless it is about an earlier text or other settings. */
    get current() {
      return this.answer && this.fits(this.answer) ? this.answer : undefined;
    }

    /** Show what the model computes of the text as it is now. */
    async refresh() {
      const { scheme } = this;
      if (!this.symbols.length) {
        this.clear("There is no text. Type something: the model needs at least one character.");
        return;
      }
      try {
        this.place.setAttribute("aria-busy", String(!this.worker.sizes.has(scheme)));
        await this.worker.load(scheme);
      } catch (error) {
        if (scheme === this.scheme) this.fail(error);
        return;
      }
      this.waiting = true;
      this.reading ??= this.readAll();
      await this.reading;
    }

    /** Read until nothing has changed meanwhile. */
    async readAll() {
      while (this.waiting) {
        this.waiting = false;
        try {
          if (await this.read()) this.draw();
        } catch (error) {
          this.fail(error);
        }
      }
      this.reading = undefined;
    }

    /** Ask the worker; false if the answer has been overtaken. */
    async read() {
      const { scheme } = this;
      const sizes = this.worker.sizes.get(scheme);
      if (!sizes || !this.symbols.length) return false;
      const questions = this.panels.map((panel) => panel.question?.());
      const { request } = this;
      const answer = await this.worker.ask("read", Object.assign({}, request, ...questions));
      answer.request = request;
      if (!this.fits(answer)) return false;
      this.sizes = sizes;
      this.answer = answer;
      return true;
    }

    /** Take from the answer what belongs to the query: its position m, and its weights from `start` to m. */
    lookUpQuery() {
      const { answer } = this;
      const m = Math.min(this.wanted ?? answer.n - 1, answer.n - 1);
      const start = answer.starts[m];
      const before = answer.starts.subarray(0, m).reduce((sum, first, i) => sum + i - first + 1, 0);
      const weights = answer.allWeights?.subarray(before, before + m - start + 1);
      Object.assign(answer, { m, start, weights });
    }

    draw() {
      const { answer, sizes } = this;
      this.lookUpQuery();
      offer(this.layer, sizes.nLayers);
      offer(this.head, sizes.nHeads);
      this.place.setAttribute("aria-busy", "false");
      this.problem.replaceChildren();
      this.query.control.max = answer.n - 1;
      this.query.control.value = answer.m;
      this.query.control.showValue();
      this.drawNote();
      for (const panel of this.panels) panel.draw();
      this.about.textContent =
        `Trained on Python's help texts, ${TRAIN_LENGTH} characters at a time: ${thousands(sizes.weights)} ` +
        `parameters, ${sizes.nLayers} layers of ${sizes.nHeads} heads, one token per character. It runs in your ` +
        "browser, and what you type stays on this page.";
      this.place.dataset.length = this.symbols.length;
      this.summarizeLater();
    }

    drawNote() {
      const { answer, symbols } = this;
      const unknown = new Set(symbols.filter((_, i) => answer.unknown[i]).map(sign));
      const notes = [];
      if (unknown.size) {
        const some = Array.from(unknown, (shown) => `“${shown}”`).slice(0, 6).join(", ");
        notes.push(`Not in the model's vocabulary: ${some}. It reads all such characters as the same token.`);
      }
      if (answer.n < symbols.length) {
        const last = answer.n - 1;
        notes.push(`The table of positions ends at ${last}, so the model cannot read beyond it.`);
      }
      if (symbols.length === LONGEST) notes.push(`The text has reached the limit of ${LONGEST} characters.`);
      if (this.left) notes.push(`The last ${thousands(this.left)} characters of yours were left out.`);
      this.note.textContent = notes.join(" ");
    }

    /** Show nothing but the text, and say why. */
    clear(why) {
      this.stop();
      this.answer = undefined;
      this.query.control.max = 0;
      this.query.control.showValue();
      this.problem.replaceChildren();
      this.note.textContent = why;
      this.place.setAttribute("aria-busy", "false");
      for (const panel of this.panels) panel.clear();
      this.summarizeLater();
    }

    fail(error) {
      this.clear("");
      const again = button("Try again", () => {
        this.area.focus(); // the button goes
        this.refresh();
      });
      this.problem.replaceChildren(`${error.message} `, again);
      this.summary.textContent = "";
    }

    /** Summarize what the panels show, when the reader pauses and not at each key. */
    summarizeLater() {
      clearTimeout(this.summaryTimer);
      const pause = this.summarized ? 500 : 0;
      this.summaryTimer = setTimeout(() => (this.summary.textContent = this.words()), pause);
      this.summarized = true;
    }

    words() {
      const shown = this.current ? this.panels.map((panel) => panel.words?.()) : [];
      return [this.note.textContent, ...shown].filter(Boolean).join(" ");
    }

    // --- writing

    async writeOn() {
      if (!this.symbols.length) return this.area.focus();
      const writing = new AbortController();
      this.writing = writing;
      this.write.textContent = "Stop";
      this.earlier.push(this.text);
      this.wanted = undefined;
      await this.refresh();
      try {
        await this.writeSome(writing.signal);
      } catch (error) {
        this.fail(error);
      }
      if (this.writing === writing) this.stop();
      if (this.answer) await this.refresh();
    }

    async writeSome(signal) {
      for (let i = 0; i < AT_A_TIME && this.symbols.length < LONGEST; i++) {
        if (signal.aborted || !this.answer?.logits) return;
        const pause = delay(still.matches ? 0 : PAUSE);
        const logits = this.cache ? await this.cache.step() : this.answer.logits;
        if (signal.aborted || !logits) return;
        const token = models.draw(this.next.probabilities(logits), this.chance());
        this.append(token ? this.sizes.symbols[token] : UNKNOWN);
        // With reduced motion only the result is shown.
        if (!still.matches || this.cache || !(await this.read())) await this.refresh();
        await pause;
      }
    }

    stop() {
      this.writing?.abort();
      this.writing = undefined;
      this.write.textContent = "Write on";
    }
  }

  // --- start: on the first page when everything else is done, elsewhere when the model comes near

  for (const place of document.querySelectorAll(".language-model")) {
    const model = new Model(place);
    const soon = () => (globalThis.requestIdleCallback ?? setTimeout)(() => model.refresh());
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
