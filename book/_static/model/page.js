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
  const { SCHEMES, sign, thousands, labelled, select, numbered, slider, button, fold } = languageModelControls;
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
    constructor(place) {
      const { show = "attention next", text = "", scheme = "rope", layer = 2, head = 1 } = place.dataset;
      const { room, query, title = "A small language model, running on this page", small } = place.dataset;
      this.place = place;
      this.small = small !== undefined;
      this.symbols = Array.from(text);
      this.written = this.symbols.map(() => false); // whether the model wrote this character
      this.wanted = query === undefined ? undefined : +query; // the query; undefined: the last character
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
      const named = Object.entries(SCHEMES).map(([key, { name, says }]) => [key, `${name} (${says})`]);
      this.schemes = select(named, scheme);
      const rooms = [["all", "the whole text"], [TRAIN_LENGTH, `${TRAIN_LENGTH} characters at most`]];
      this.room = select(rooms, room ?? "all");
      this.layer = select(numbered(2), layer - 1);
      this.head = select(numbered(4), head - 1);
      this.query = slider("Query", {
        max: Math.max(this.symbols.length - 1, 0),
        value: this.wanted ?? LONGEST,
        say: (m) => (m in this.symbols ? `${m} “${sign(this.symbols[m])}”` : "–"),
      });
      const rows = this.small ? 2 : 3;
      this.area = html("textarea", { rows, spellcheck: "false", autocomplete: "off" });
      this.area.value = text;
      this.write = button("Write on", () => (this.writing ? this.stop() : this.writeOn()), { class: "main" });

      this.area.addEventListener("input", () => this.edit());
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
      const instead = html("div", { class: "model-instead" }, ...place.childNodes);
      place.replaceChildren(
        html("p", { class: "model-title" }, html("strong", {}, name)),
        bar,
        html("label", { class: "model-text" }, words, this.area),
        this.note,
        this.problem,
        html("div", { class: "model-panels" }, ...this.panels.map((panel) => panel.element)),
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

    // --- the text and the settings

    edit() {
      this.stop();
      this.before = undefined;
      const symbols = Array.from(this.area.value);
      this.left = Math.max(symbols.length - LONGEST, 0);
      this.setText(symbols.slice(0, LONGEST));
      if (this.left) this.area.value = this.text;
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

    /** Undo what the model wrote since the last press: of that the browser's own undo knows nothing. */
    undo(event) {
      const asked = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (!asked || this.before === undefined) return;
      event.preventDefault();
      this.area.value = this.before;
      this.edit();
    }

    choose(m) {
      this.wanted = m === this.symbols.length - 1 ? undefined : m;
      this.refresh();
    }

    /** Another scheme. */
    restart() {
      this.stop();
      for (const panel of this.panels) panel.restart?.();
      this.refresh();
    }

    // --- reading

    /** Show what the model computes of the text as it is now. */
    async refresh() {
      const { scheme } = this;
      if (!this.symbols.length) {
        this.clear("There is no text. Type something: a model needs one character at least.");
        return;
      }
      this.place.setAttribute("aria-busy", String(!this.worker?.sizes.has(scheme)));
      try {
        this.worker ??= new languageModelLoading.Helper();
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
      const usual = { scheme, text: this.text, room: this.context, query: this.wanted };
      const place = { layer: +this.layer.value, head: +this.head.value };
      const answer = await this.worker.ask("read", Object.assign(usual, place, ...questions));
      if (scheme !== this.scheme || usual.text !== this.text) return false;
      this.sizes = sizes;
      this.answer = answer;
      return true;
    }

    draw() {
      const { answer, sizes } = this;
      this.place.setAttribute("aria-busy", "false");
      this.problem.replaceChildren();
      this.query.control.max = answer.n - 1;
      this.query.control.value = answer.m;
      this.query.control.say();
      this.drawNote();
      for (const panel of this.panels) panel.draw();
      this.about.textContent =
        `Trained on Python's help texts, ${TRAIN_LENGTH} characters at a time: ${thousands(sizes.weights)} ` +
        `parameters, ${sizes.nLayers} layers of ${sizes.nHeads} heads, one token per character. It runs in your ` +
        "browser, and what you type stays on this page.";
      this.place.dataset.length = this.symbols.length;
      this.sayLater();
    }

    drawNote() {
      const { answer, symbols } = this;
      const unknown = new Set(symbols.filter((_, i) => answer.unknown[i]));
      const notes = [];
      if (unknown.size) {
        const some = Array.from(unknown, (symbol) => `“${sign(symbol)}”`).slice(0, 6).join(", ");
        notes.push(`The model does not know ${some}: it reads one and the same token for all of these.`);
      }
      if (answer.n < symbols.length) {
        const last = answer.n - 1;
        notes.push(`The table has ${answer.n} positions, 0 to ${last}: what comes after cannot be read.`);
      }
      if (symbols.length === LONGEST) notes.push(`The text is as long as it may be here: ${LONGEST} characters.`);
      if (this.left) notes.push(`The last ${thousands(this.left)} of yours were left out.`);
      this.note.textContent = notes.join(" ");
    }

    /** Show nothing but the text, and say why. */
    clear(why) {
      this.stop();
      this.answer = undefined;
      this.query.control.max = 0;
      this.query.control.say();
      this.problem.replaceChildren();
      this.note.textContent = why;
      this.place.setAttribute("aria-busy", "false");
      for (const panel of this.panels) panel.clear();
      this.sayLater();
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

    /** Say what the panels show, when the reader pauses and not at each key. */
    sayLater() {
      clearTimeout(this.saying);
      this.saying = setTimeout(() => (this.summary.textContent = this.words()), this.said ? 500 : 0);
      this.said = true;
    }

    words() {
      const shown = this.answer ? this.panels.map((panel) => panel.words?.()) : [];
      return [this.note.textContent, ...shown].filter(Boolean).join(" ");
    }

    // --- writing

    async writeOn() {
      if (!this.symbols.length) return this.area.focus();
      const writing = new AbortController();
      this.writing = writing;
      this.write.textContent = "Stop";
      this.before = this.text;
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
        await (still.matches && !this.cache ? this.read() : this.refresh());
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
