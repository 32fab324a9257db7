// The panel of chapter 10: what a character costs with the cache and without it, and where the cache begins to pay.
"use strict";

languageModelPanels.cache = (() => {
  const { html, isNarrow, lineChart, legend, table, crossover } = languageModelCharts;
  const { SCHEMES, thousands, labelled, select, button, fold } = languageModelControls;
  const LENGTHS = [4, 8, 16, 32, 64, 128, 256, 512]; // at which both ways are timed
  const ROUNDS = 9;
  const WAYS = ["uncached", "cached"];
  const STYLES = { uncached: "s1", cached: "s0" };

  const milliseconds = (samples) => 1000 * samples.toSorted((a, b) => a - b)[samples.length >> 1];

  class CachePanel {
    constructor(model) {
      this.model = model;
      this.way = select([["cached", "with the cache"], ["uncached", "without it"]], "cached");
      this.quantity = select([["ms", "milliseconds"], ["operations", "operations"]], "ms");
      this.quantity.addEventListener("change", () => this.draw());
      this.counter = html("p", { class: "model-counter" });
      this.chart = html("div", { class: "model-chart" });
      this.measure = button("Measure both ways", () => (this.measuring ? this.stop() : this.measureBoth()));
      this.save = button("Download the record (JSON)", () => this.download());
      this.verdict = html("p", { class: "model-verdict", role: "status" });
      const region = { class: "model-table", tabindex: "0", role: "region", "aria-label": "Measured times" };
      this.table = html("div", region);
      this.element = html(
        "section",
        { class: "cache" },
        html("p", { class: "model-head" }, "What each character costs"),
        html("div", { class: "model-row" }, labelled("Write", this.way), labelled("Draw", this.quantity)),
        this.counter,
        this.chart,
        html("div", { class: "model-bar" }, this.measure, this.save),
        this.verdict,
        fold("The numbers", this.table),
      );
      this.restart();
    }

    /** What was counted and measured belongs to one scheme. */
    restart() {
      this.stop();
      this.steps = { uncached: new Map(), cached: new Map() }; // length → what its last character cost
      this.measured = undefined;
      this.save.disabled = true;
      this.counter.textContent = "Press “Write on” to see what each character costs.";
      this.report = this.verdict.textContent = "";
    }

    clear() {
      this.report = "";
      this.draw(); // what was measured did not depend on the text
    }

    words() {
      return this.report;
    }

    /** The logits after the text, computed in the chosen way; what it cost goes into the chart. */
    async step() {
      const { worker, scheme, text } = this.model;
      const way = this.way.value;
      const step = await worker.ask("step", { scheme, text, cached: way === "cached" });
      if (scheme !== this.model.scheme) return undefined;
      this.steps[way].set(step.length, step);
      const bytes = thousands(step.bytes);
      const held = step.bytes ? `The cache holds ${bytes} bytes of keys and values.` : "Nothing is stored.";
      const cost = `${thousands(step.operations)} operations, ${step.ms.toFixed(2)} ms`;
      this.report = this.counter.textContent = `Character ${step.length}: ${cost}. ${held}`;
      return step.logits;
    }

    stop() {
      if (!this.measuring) return;
      this.measuring.abort();
      this.measuring = undefined;
      this.measure.textContent = "Measure both ways";
      this.verdict.textContent = "Stopped before all lengths were measured.";
    }

    async measureBoth() {
      this.model.stop();
      this.stop();
      const measuring = new AbortController();
      this.measuring = measuring;
      this.measure.textContent = "Stop measuring";
      this.save.disabled = true;
      this.verdict.textContent = "Measuring …";
      try {
        await this.measureAll(this.model.scheme, measuring.signal);
      } catch (error) {
        if (!measuring.signal.aborted) this.verdict.textContent = error.message;
      }
      if (this.measuring !== measuring) return;
      this.measuring = undefined;
      this.measure.textContent = "Measure both ways";
    }

    async measureAll(scheme, signal) {
      const { worker } = this.model;
      const sizes = await worker.load(scheme);
      if (signal.aborted) return;
      const operations = { uncached: [], cached: [] };
      const measured = { scheme, sizes, lengths: [], uncached: [], cached: [], operations };
      this.measured = measured;
      // The first calls of a program are slow, until the browser has compiled it: they are made and not recorded.
      await worker.ask("measure", { scheme, length: LENGTHS[0], rounds: ROUNDS });
      if (signal.aborted) return;
      for (const length of LENGTHS.filter((each) => each <= sizes.maxLength)) {
        const both = await worker.ask("measure", { scheme, length, rounds: ROUNDS });
        if (signal.aborted) return;
        measured.lengths.push(length);
        for (const way of WAYS) {
          measured[way].push(both[way]);
          measured.operations[way].push(both.operations[way]);
        }
        this.draw();
      }
      const ceilings = await worker.ask("ceilings", { scheme });
      if (signal.aborted) return;
      Object.assign(measured, ceilings);
      const first = crossover(measured.lengths, measured.uncached, measured.cached);
      this.verdict.textContent =
        first === null
          ? "Here the cache pays at none of these lengths: even at the longest, a character without it takes at most " +
            "1.2 times as long in a quarter of the rounds or more."
          : `Here the cache pays from ${first} characters on` +
            (first === LENGTHS[0] ? ", the shortest length timed" : "") +
            ": at this length and every longer one, a character takes at least 1.2 times as long without the cache " +
            "in three quarters of the rounds.";
      this.save.disabled = false;
      this.draw();
    }

    /** The curve that was measured in one way: [length, milliseconds or operations]. */
    curve(way) {
      const { lengths = [] } = this.measured ?? {};
      const value = (i) =>
        this.quantity.value === "ms" ? milliseconds(this.measured[way][i]) : this.measured.operations[way][i];
      return lengths.map((length, i) => [length, value(i)]);
    }

    /** What writing has cost in one way. */
    counted(way) {
      return Array.from(this.steps[way].values(), (step) => [step.length, step[this.quantity.value]]);
    }

    draw() {
      const lines = WAYS.flatMap((way) => [
        { points: this.counted(way), style: STYLES[way], dots: true },
        { points: this.curve(way), style: STYLES[way] },
      ]);
      const values = lines.flatMap((line) => line.points.map(([, value]) => value)).filter((value) => value > 0);
      if (!values.length) values.push(0.2, 5);
      const chart = lineChart({
        x: { from: LENGTHS[0], to: LENGTHS.at(-1), log: 2, label: "characters in the text" },
        y: {
          from: Math.min(...values) / 2,
          to: Math.max(...values) * 2,
          log: 10,
          label: this.quantity.value === "ms" ? "ms per character" : "operations",
        },
        words: "What a character costs, with and without the cache, against the length of the text.",
        narrow: isNarrow(this.chart),
        lines,
      });
      const names = [[STYLES.uncached, "without the cache"], [STYLES.cached, "with the cache"]];
      this.chart.replaceChildren(chart, legend(names));
      this.drawTable();
    }

    drawTable() {
      const { measured } = this;
      if (!measured) return this.table.replaceChildren("Nothing has been measured yet.");
      const { nLayers, width } = measured.sizes;
      const rows = measured.lengths.map((length, i) => [
        String(length),
        ...WAYS.map((way) => milliseconds(measured[way][i]).toFixed(3)),
        ...WAYS.map((way) => thousands(measured.operations[way][i])),
        thousands(2 * nLayers * width * 4 * length),
      ]);
      const costs = ["ms without", "ms with", "operations without", "operations with"];
      const heads = ["characters", ...costs, "bytes in the cache"];
      this.table.replaceChildren(table(`Medians of ${ROUNDS} rounds`, heads, rows));
    }

    /** A record as benchmarks/kv_cache.py makes them: chapter 10 draws it from benchmarks/results. */
    record() {
      const { scheme, sizes, lengths, uncached, cached, bandwidth, throughput } = this.measured;
      const { nLayers, nHeads, width, headDim, symbols } = sizes;
      const model = {
        name: SCHEMES[scheme].name,
        n_layers: nLayers,
        d_model: width,
        n_heads: nHeads,
        n_kv_heads: nHeads,
        head_dim: headDim,
        vocab_size: symbols.length,
        n_weights: nLayers * 12 * width * width,
      };
      return {
        device: `A browser with ${navigator.hardwareConcurrency} processors`,
        device_type: "cpu",
        versions: { python: "none", torch: "none", browser: navigator.userAgent },
        date: new Date().toISOString().slice(0, 10),
        commit: "a page of the book",
        dtype: "float32",
        bandwidth,
        throughput,
        runs: [{ model, batch_size: 1, lengths, uncached, cached }],
      };
    }

    download() {
      const file = new Blob([JSON.stringify(this.record(), null, 1)], { type: "application/json" });
      const link = html("a", { href: URL.createObjectURL(file), download: "kv_cache_browser.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }
  }

  return CachePanel;
})();
