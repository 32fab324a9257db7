// What runs beside the page, in a worker: it reads texts, keeps the cache of the last one, and measures.
// Messages come as {id, what, ...} and are answered with {id, ...}; `what` is a name in `tasks`.
// The function is used as text, as that of model.js is.
"use strict";

// eslint-disable-next-line no-unused-vars
function languageModelWorker(models, scope) {
  const made = new Map(); // scheme → model

  /**
   * A text and what a model computed of it, token by token. Typing at its end adds to the cache.
   *
   * room: how many tokens the context may hold. A full one drops all but the last BLOCK tokens, which are read
   * again from position 0 on: that is the model with its context cut of chapter 07.
   */
  class Reading {
    constructor(model, room) {
      this.model = model;
      this.room = Math.min(room, 1024);
      this.forget();
    }

    forget() {
      this.tokens = [];
      this.rows = []; // of each token: {start, logits, weights: by layer, (heads, start to here)}
      this.start = 0; // the token at position 0 of the cache
      this.cache = models.newCache(this.model, this.room);
    }

    read(tokens) {
      let same = 0;
      while (same < this.tokens.length && this.tokens[same] === tokens[same]) same++;
      if (same < this.tokens.length) this.goBack(same);
      while (this.tokens.length < tokens.length) {
        const at = this.tokens.length;
        if (this.cache.length === this.room) this.moveOn();
        this.extend(tokens.slice(at, at + this.room - this.cache.length));
      }
    }

    /** Keep the first n tokens; where their context has been dropped already, begin again. */
    goBack(n) {
      if (n === 0 || this.rows[n - 1].start !== this.start) return this.forget();
      this.tokens.length = this.rows.length = n;
      this.cache.length = n - this.start;
    }

    moveOn() {
      this.start = this.tokens.length - models.BLOCK;
      this.cache.length = 0;
      models.forward(this.model, this.tokens.slice(this.start), { cache: this.cache, lastOnly: true });
    }

    extend(tokens) {
      const { model, start, rows, cache } = this;
      const first = rows.length;
      for (let i = 0; i < tokens.length; i++) {
        const size = model.nHeads * (cache.length + i + 1);
        rows.push({ start, weights: Array.from({ length: model.nLayers }, () => new Float32Array(size)) });
      }
      const watch = (layer, m, head, weights) => {
        rows[start + m].weights[layer].set(weights.subarray(0, m + 1), head * (m + 1));
      };
      const logits = models.forward(model, tokens, { cache, watch });
      const n = model.symbols.length;
      tokens.forEach((_, i) => (rows[first + i].logits = logits.subarray(i * n, (i + 1) * n)));
      this.tokens.push(...tokens);
    }

    /** The first token that each query sees. */
    starts() {
      return Int32Array.from(this.rows, ({ start }) => start);
    }

    /** The weights of all queries of one head, one after the other: query m gives them to the tokens starts[m] to m. */
    weights(layer, head) {
      const sizes = this.rows.map(({ start }, m) => m - start + 1);
      const all = new Float32Array(sizes.reduce((a, b) => a + b, 0));
      let at = 0;
      sizes.forEach((n, m) => {
        all.set(this.rows[m].weights[layer].subarray(head * n, (head + 1) * n), at);
        at += n;
      });
      return all;
    }

    /** The weights of all queries of one head, a row for each, as the roots of the weights in steps of 1 to 255. */
    map(layer, head) {
      const size = this.rows.length;
      const steps = new Uint8Array(size * size);
      this.rows.forEach((row, m) => {
        const n = m - row.start + 1;
        for (let i = 0; i < n; i++) {
          steps[m * size + row.start + i] = Math.round(255 * Math.sqrt(row.weights[layer][head * n + i]));
        }
      });
      return steps;
    }

    /** The loss in nats at each position, for the token that follows; NaN where the model does not know it. */
    losses() {
      const loss = (token, i) => (token ? models.loss(this.rows[i].logits, token) : NaN);
      return Float32Array.from(this.tokens.slice(1), loss);
    }
  }

  const readings = new Map(); // the last reading of each model and room
  function read(scheme, text, room) {
    const model = made.get(scheme);
    const name = `${scheme} ${room}`;
    if (!readings.has(name)) readings.set(name, new Reading(model, room));
    const reading = readings.get(name);
    const tokens = models.encode(model, text);
    // Without a cut a table of positions ends, and so does what the model can read.
    reading.read(room === Infinity ? tokens.slice(0, model.position.maxLength) : tokens);
    return { model, reading, tokens };
  }

  /** What a scheme adds, asked of the same functions that the model runs, for distances or positions below n. */
  function describe(model, n) {
    const { position, nHeads, headDim, width } = model;
    const reach = Math.min(n, position.maxLength);
    const added = new Float32Array(reach * width);
    const turned = new Float32Array(n * headDim); // of the pairs (1, 0): cosine and sine
    const bias = new Float32Array(nHeads * n);
    for (let at = 0; at < n; at++) {
      if (at < reach) position.embed(added.subarray(at * width, (at + 1) * width), at);
      const pairs = turned.subarray(at * headDim, (at + 1) * headDim);
      for (let i = 0; i < headDim; i += 2) pairs[i] = 1;
      position.rotate(pairs, at);
      for (let head = 0; head < nHeads; head++) bias[head * n + at] = position.bias(head, at);
    }
    return { added, turned, bias, n, width, headDim };
  }

  // --- time

  const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

  /** Milliseconds of one call. A browser rounds its clock, so a short one is repeated for `least` milliseconds. */
  function time(call, least = 3) {
    const start = performance.now();
    let calls = 0;
    let end;
    do {
      call();
      calls++;
      end = performance.now();
    } while (end - start < least);
    return (end - start) / calls;
  }

  // What `step` keeps of the step before: the tokens that its cache has read.
  let decoding = { scheme: "", tokens: [], cache: undefined };

  /** One step of writing, timed: the logits after the last token, with the cache or without. */
  function step(scheme, text, cached) {
    const model = made.get(scheme);
    const tokens = models.encode(model, text);
    const [before, last] = [tokens.slice(0, -1), tokens.slice(-1)];
    let logits;
    let run = () => (logits = models.forward(model, tokens, { lastOnly: true }));
    if (cached) {
      const fits = decoding.scheme === scheme && decoding.tokens.every((token, i) => token === before[i]);
      if (!fits || decoding.tokens.length === 0) decoding = { scheme, tokens: [], cache: models.newCache(model, 1024) };
      const { cache } = decoding;
      const unread = before.slice(decoding.tokens.length);
      cache.length = decoding.tokens.length;
      if (unread.length) models.forward(model, unread, { cache, lastOnly: true });
      decoding.tokens = before;
      run = () => {
        cache.length = before.length;
        logits = models.forward(model, last, { cache, lastOnly: true });
      };
    }
    const counted = models.count.operations;
    run();
    const operations = models.count.operations - counted;
    const bytes = cached ? models.cacheBytes(model, tokens.length) : 0;
    return { logits, operations, bytes, ms: time(run), length: tokens.length };
  }

  /** Both ways at one length, in turn, round after round: seconds. */
  function measure(scheme, length, rounds) {
    const model = made.get(scheme);
    const tokens = Array.from({ length }, (_, i) => 1 + ((7 * i) % (model.symbols.length - 1)));
    const cache = models.newCache(model, length);
    models.forward(model, tokens, { cache, lastOnly: true });
    const ways = {
      uncached: () => models.forward(model, tokens, { lastOnly: true }),
      cached: () => {
        cache.length = length - 1;
        models.forward(model, tokens.slice(-1), { cache, lastOnly: true });
      },
    };
    const result = { uncached: [], cached: [], operations: {} };
    for (const [way, run] of Object.entries(ways)) {
      const counted = models.count.operations;
      run();
      result.operations[way] = models.count.operations - counted;
    }
    for (let round = 0; round < rounds; round++) {
      for (const [way, run] of Object.entries(ways)) result[way].push(time(run, 2) / 1000);
    }
    return result;
  }

  /** Bytes per second of a large copy, read and written, and operations per second of a product of matrices. */
  function ceilings(scheme) {
    const model = made.get(scheme);
    const [from, to] = [new Float32Array(2 ** 21), new Float32Array(2 ** 21)];
    const copies = Array.from({ length: 5 }, () => time(() => to.set(from)));
    const tokens = Array(256).fill(1);
    const products = Array.from({ length: 3 }, () => {
      const counted = models.count.operations;
      const start = performance.now();
      models.forward(model, tokens.slice(0, model.position.maxLength));
      return (models.count.operations - counted) / (performance.now() - start);
    });
    return { bandwidth: (2 * from.byteLength * 1000) / median(copies), throughput: 1000 * Math.max(...products) };
  }

  // --- what the page can ask for

  const tasks = {
    load: ({ stored }) => {
      const model = models.build(stored);
      made.set(stored.scheme, model);
      const { nLayers, nHeads, width, headDim } = model;
      const { maxLength } = model.position;
      const weights = Object.values(model.parameters).reduce((sum, values) => sum + values.length, 0);
      return { nLayers, nHeads, width, headDim, maxLength, weights, symbols: model.symbols };
    },
    // map: the weights of the head, as numbers and as a picture; loss: the losses; reach: what position adds below
    // this distance.
    read: ({ scheme, text, room, layer, head, map, loss, reach }) => {
      const { model, reading, tokens } = read(scheme, text, room);
      const n = reading.rows.length;
      const answer = { n, unknown: tokens.map((token) => token === 0), starts: reading.starts() };
      answer.logits = n < tokens.length ? null : reading.rows[n - 1].logits.slice();
      if (loss) answer.losses = reading.losses();
      if (map) Object.assign(answer, { map: reading.map(layer, head), allWeights: reading.weights(layer, head) });
      if (reach) answer.position = describe(model, reach);
      return answer;
    },
    losses: ({ scheme, text, room }) => ({ losses: read(scheme, text, room).reading.losses() }),
    step: ({ scheme, text, cached }) => step(scheme, text, cached),
    measure: ({ scheme, length, rounds }) => measure(scheme, length, rounds),
    ceilings: ({ scheme }) => ceilings(scheme),
  };
  scope.onmessage = ({ data }) => {
    try {
      scope.postMessage({ id: data.id, ...tasks[data.what](data) });
    } catch (error) {
      scope.postMessage({ id: data.id, error: error.message });
    }
  };
}
