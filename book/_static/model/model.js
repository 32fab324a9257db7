// The language models of chapter 07 in plain JavaScript: what lib/transformer.py, lib/block.py, lib/attention.py
// and the modules of the position schemes compute, with the same stored weights. A test compares the logits.
//
// Conventions
// - A matrix is a Float32Array, row after row. Its shape is given as (rows, columns).
// - The weight of a linear map is (outputs, inputs), as torch stores it.
// - Sums are formed in 64 bits, as JavaScript's numbers are, and rounded once, when they are stored.
// - An operation is one multiplication or one addition inside a product of matrices or of vectors, as chapter 10
//   counts them. Norms, activations and the softmax are left out there, and here.
//
// Everything is inside one function, because the worker is made from this function's text (see loading.js).
"use strict";

// eslint-disable-next-line no-unused-vars
function languageModels() {
  const N_HEADS = 4;
  const EPS = 1e-5; // inside the root of a layer norm
  const ROPE_BASE = 10000;
  const T5_MAX_DISTANCE = 32;
  const TRAIN_LENGTH = 64; // characters in a text of the training
  const BLOCK = 32; // a context that is cut to this length moves on by so many characters (chapter 07)
  const count = { operations: 0 };

  // --- weights

  /** A 16-bit float as a number: sign, 5 bits of exponent, 10 bits of fraction. */
  function fromHalf(bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }

  /**
   * Make a model of what a weights file registers.
   * stored: {scheme, symbols, shapes: [[name, shape], ...], halves: base64 of 16-bit floats, in this order}
   */
  function build(stored) {
    const bytes = Uint8Array.from(atob(stored.halves), (sign) => sign.charCodeAt(0));
    const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);
    const wanted = stored.shapes.reduce((sum, [, shape]) => sum + 2 * sizeOf(shape), 0);
    if (bytes.length !== wanted) {
      throw new Error(`The weights of this scheme arrived damaged: ${bytes.length} bytes instead of ${wanted}.`);
    }
    const halves = new DataView(bytes.buffer);
    const parameters = {};
    let at = 0;
    for (const [name, shape] of stored.shapes) {
      const values = new Float32Array(sizeOf(shape));
      for (let i = 0; i < values.length; i++, at += 2) values[i] = fromHalf(halves.getUint16(at, true));
      if (!values.every(Number.isFinite)) {
        throw new Error(`The weights of this scheme arrived damaged: ${name} has values that are not numbers.`);
      }
      parameters[name] = values;
    }
    const width = stored.shapes.find(([name]) => name === "embedding.weight")[1][1];
    const model = {
      scheme: stored.scheme,
      symbols: stored.symbols,
      numbers: new Map(stored.symbols.map((symbol, number) => [symbol, number])),
      parameters,
      width, // d_model
      headDim: width / N_HEADS,
      nHeads: N_HEADS,
      nLayers: stored.shapes.filter(([name]) => name.endsWith("w_q.weight")).length,
    };
    model.position = {
      maxLength: Infinity,
      scale: 1 / Math.sqrt(model.headDim),
      embed() {},
      rotate() {},
      bias: () => 0,
      ...SCHEMES[stored.scheme](model),
    };
    return model;
  }

  /** A text as numbers, one for each character. Number 0 is for characters that the model does not know. */
  function encode(model, text) {
    return Array.from(text, (symbol) => model.numbers.get(symbol) ?? 0);
  }

  // --- the parts of a layer

  /** The dot product of n numbers of a from i on and of b from j on. Four sums at once are faster than one. */
  function dot(a, i, b, j, n) {
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    for (let k = 0; k < n; k += 4) {
      s0 += a[i + k] * b[j + k];
      s1 += a[i + k + 1] * b[j + k + 1];
      s2 += a[i + k + 2] * b[j + k + 2];
      s3 += a[i + k + 3] * b[j + k + 3];
    }
    return s0 + s1 + s2 + s3;
  }

  /** x W^T + b: (rows, inputs) → (rows, outputs); inputs is a multiple of 4. */
  function linear(x, inputs, weight, bias) {
    const outputs = weight.length / inputs;
    const rows = x.length / inputs;
    const y = new Float32Array(rows * outputs);
    for (let row = 0; row < rows; row++) {
      for (let o = 0; o < outputs; o++) {
        y[row * outputs + o] = dot(x, row * inputs, weight, o * inputs, inputs) + (bias ? bias[o] : 0);
      }
    }
    count.operations += 2 * rows * inputs * outputs;
    return y;
  }

  /** Give each row mean 0 and variance 1, then scale and shift it: (rows, d) → (rows, d). Chapter 08. */
  function layerNorm(x, weight, bias) {
    const d = weight.length;
    const y = new Float32Array(x.length);
    for (let start = 0; start < x.length; start += d) {
      let mean = 0;
      for (let i = 0; i < d; i++) mean += x[start + i] / d;
      let variance = 0;
      for (let i = 0; i < d; i++) variance += (x[start + i] - mean) ** 2 / d;
      const factor = 1 / Math.sqrt(variance + EPS);
      for (let i = 0; i < d; i++) y[start + i] = (x[start + i] - mean) * factor * weight[i] + bias[i];
    }
    return y;
  }

  /** The error function to within 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26). */
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const powers = 0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)));
    return Math.sign(x) * (1 - t * powers * Math.exp(-x * x));
  }

  const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));

  /** Softmax of the first n numbers, in place. */
  function softmax(scores, n) {
    let largest = -Infinity;
    for (let i = 0; i < n; i++) largest = Math.max(largest, scores[i]);
    let total = 0;
    for (let i = 0; i < n; i++) total += scores[i] = Math.exp(scores[i] - largest);
    for (let i = 0; i < n; i++) scores[i] /= total;
  }

  function add(x, y) {
    for (let i = 0; i < x.length; i++) x[i] += y[i];
  }

  // --- position schemes: where position enters, for each of them. A scheme defines what it needs of
  //     embed(row, position)    changes a token's vector before the first layer
  //     rotate(row, position)   changes a query or a key of all heads
  //     bias(head, distance)    is added to a scaled score
  //     scale                   the factor on query · key
  //     maxLength               how many positions there are

  const SCHEMES = {
    // A causal mask alone.
    none: () => ({}),

    // Sines and cosines of the position, added to the input. Chapter 03.
    sinusoidal: ({ width }) => ({
      embed(row, position) {
        for (let i = 0; i < width; i += 2) {
          const phase = position * 10000 ** (-i / width);
          row[i] += Math.sin(phase);
          row[i + 1] += Math.cos(phase);
        }
      },
    }),

    // One trained vector for each position of a table, which has an end. Chapter 03.
    learned: ({ width, parameters }) => {
      const table = parameters["position.table"]; // (positions, width)
      return {
        maxLength: table.length / width,
        embed(row, position) {
          for (let i = 0; i < width; i++) row[i] += table[position * width + i];
        },
      };
    },

    // Each pair of components is rotated by an angle proportional to the position. Chapter 05.
    rope: ({ headDim }) => ({
      rotate(row, position) {
        for (let i = 0; i < headDim; i += 2) {
          const angle = position * ROPE_BASE ** (-i / headDim);
          const cos = Math.cos(angle);
          const sin = Math.sin(angle);
          for (let at = i; at < row.length; at += headDim) {
            const [first, second] = [row[at], row[at + 1]];
            row[at] = first * cos - second * sin;
            row[at + 1] = first * sin + second * cos;
          }
        }
      },
    }),

    // A penalty for each token of distance; its slope falls from head to head. Chapter 06.
    alibi: ({ nHeads }) => ({
      bias: (head, distance) => -(2 ** ((-8 * (head + 1)) / nHeads)) * distance,
    }),

    // One trained number for each bucket of distances and head, and scores that are not scaled. Chapter 04.
    t5: ({ nHeads, parameters }) => {
      const table = parameters["position.table"]; // (buckets, heads)
      const starts = bucketStarts(table.length / nHeads, T5_MAX_DISTANCE);
      return {
        scale: 1,
        bias: (head, distance) => table[starts.findLastIndex((start) => start <= distance) * nHeads + head],
      };
    },
  };

  /** The smallest distance of each of T5's buckets: the first half has one distance each (lib/t5.py). */
  function bucketStarts(nBuckets, maxDistance) {
    const exact = nBuckets / 2;
    const starts = Array.from({ length: exact }, (_, distance) => distance);
    for (let step = 0; step < exact; step++) {
      // In powers, because a rounded logarithm could move a distance to the next bucket.
      let distance = exact;
      while (distance ** exact < maxDistance ** step * exact ** (exact - step)) distance++;
      starts.push(distance);
    }
    return starts;
  }

  // --- the model

  /** Room for the keys and values of so many tokens, in each layer: (tokens, width) each. */
  function newCache(model, capacity) {
    const rows = () => Array.from({ length: model.nLayers }, () => new Float32Array(capacity * model.width));
    return { length: 0, capacity, keys: rows(), values: rows() };
  }

  /** The bytes that a cache holds for its tokens: 2 · layers · width · 4 for each. */
  const cacheBytes = (model, tokens) => 2 * model.nLayers * model.width * 4 * tokens;

  /** Multi-head attention of new tokens to those in the cache and to themselves: (rows, width) → (rows, width). */
  function attention(model, layer, x, cache, watch) {
    const { width, headDim, nHeads, position, parameters } = model;
    const name = `blocks.${layer}.self_attention`;
    const project = (part, rows = x) =>
      linear(rows, width, parameters[`${name}.${part}.weight`], parameters[`${name}.${part}.bias`]);
    const queries = project("w_q");
    const newKeys = project("w_k");
    const [keys, values] = [cache.keys[layer], cache.values[layer]];
    const rows = x.length / width;
    for (let row = 0; row < rows; row++) {
      const at = cache.length + row;
      position.rotate(queries.subarray(row * width, (row + 1) * width), at);
      position.rotate(newKeys.subarray(row * width, (row + 1) * width), at);
    }
    keys.set(newKeys, cache.length * width);
    values.set(project("w_v"), cache.length * width);

    const mixed = new Float32Array(x.length);
    const weights = new Float64Array(cache.length + rows);
    for (let row = 0; row < rows; row++) {
      const m = cache.length + row; // the query's position; it sees the keys 0 to m
      for (let head = 0; head < nHeads; head++) {
        const start = head * headDim;
        for (let n = 0; n <= m; n++) {
          const score = dot(queries, row * width + start, keys, n * width + start, headDim);
          weights[n] = score * position.scale + position.bias(head, m - n);
        }
        softmax(weights, m + 1);
        watch?.(layer, m, head, weights);
        for (let i = start; i < start + headDim; i++) {
          let sum = 0;
          for (let n = 0; n <= m; n++) sum += weights[n] * values[n * width + i];
          mixed[row * width + i] = sum;
        }
      }
      count.operations += 4 * width * (m + 1);
    }
    return project("w_o", mixed);
  }

  /** The same small network at each token: (rows, width) → (rows, width). */
  function feedForward(model, layer, x) {
    const { width, parameters } = model;
    const name = `blocks.${layer}.feed_forward`;
    const inner = parameters[`${name}.w_1.bias`].length;
    const hidden = linear(x, width, parameters[`${name}.w_1.weight`], parameters[`${name}.w_1.bias`]).map(gelu);
    return linear(hidden, inner, parameters[`${name}.w_2.weight`], parameters[`${name}.w_2.bias`]);
  }

  /**
   * The logits of the token after each of these, (tokens or 1, symbols).
   *
   * The cache holds what came before and takes up the new tokens. Without one the tokens are the whole text.
   * lastOnly: only those of the last token, which is all that writing needs.
   * watch(layer, m, head, weights): sees the attention weights of query m, the first m + 1 numbers.
   */
  function forward(model, tokens, { cache = newCache(model, tokens.length), lastOnly = false, watch } = {}) {
    const { width, position, parameters } = model;
    const end = cache.length + tokens.length;
    if (!tokens.length) throw new RangeError("there are no tokens: a model needs one at least");
    if (end > position.maxLength) {
      throw new RangeError(`position ${end - 1} is out of reach: ${model.scheme} has ${position.maxLength} positions`);
    }
    if (end > cache.capacity) throw new RangeError(`${end} tokens do not fit into a cache of ${cache.capacity}`);
    const x = new Float32Array(tokens.length * width);
    tokens.forEach((token, i) => {
      const row = x.subarray(i * width, (i + 1) * width);
      const vector = parameters["embedding.weight"].subarray(token * width, (token + 1) * width);
      for (let j = 0; j < width; j++) row[j] = vector[j] * Math.sqrt(width);
      position.embed(row, cache.length + i);
    });
    const norm = (name, rows) => layerNorm(rows, parameters[`${name}.weight`], parameters[`${name}.bias`]);
    for (let layer = 0; layer < model.nLayers; layer++) {
      add(x, attention(model, layer, norm(`blocks.${layer}.self_norm`, x), cache, watch));
      add(x, feedForward(model, layer, norm(`blocks.${layer}.feed_forward_norm`, x)));
    }
    cache.length = end;
    const last = norm("final_norm", lastOnly ? x.subarray(x.length - width) : x);
    return linear(last, width, parameters["output.weight"]);
  }

  // --- from logits to text

  /** The probabilities of the next token: softmax of logits / temperature over the k largest. 0: the largest alone. */
  function distribution(logits, { temperature = 1, topK = logits.length } = {}) {
    const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]);
    const chosen = order.slice(0, temperature > 0 ? topK : 1);
    const scores = chosen.map((token) => logits[token] / (temperature || 1));
    softmax(scores, scores.length);
    const probabilities = new Float64Array(logits.length);
    chosen.forEach((token, i) => (probabilities[token] = scores[i]));
    return probabilities;
  }

  /** Draw a token, given a number between 0 and 1. */
  function draw(probabilities, chance) {
    let total = 0;
    let last = 0;
    for (let token = 0; token < probabilities.length; token++) {
      if (probabilities[token] === 0) continue;
      total += probabilities[token];
      last = token;
      if (chance < total) break;
    }
    return last; // rounding may leave the total just below 1
  }

  /** The loss of a token in nats, the negative logarithm of its probability. */
  function loss(logits, token) {
    const largest = logits.reduce((a, b) => Math.max(a, b));
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0);
    return largest + Math.log(total) - logits[token];
  }

  /** Numbers between 0 and 1 that look random and repeat for the same seed (Marsaglia's xorshift, 32 bits). */
  function chances(seed) {
    let state = seed | 0 || 1;
    const next = () => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state >>> 0) / 2 ** 32;
    };
    for (let i = 0; i < 20; i++) next(); // the first numbers after a small seed are small
    return next;
  }

  return {
    build,
    encode,
    forward,
    newCache,
    cacheBytes,
    distribution,
    draw,
    loss,
    chances,
    count,
    bucketStarts,
    fromHalf,
    ROPE_BASE,
    TRAIN_LENGTH,
    BLOCK,
  };
}
