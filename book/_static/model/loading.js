// How weights and programs reach the page and its worker. From a folder, without a server, a page may read nothing
// but scripts: so weights are scripts, and the worker is made from the text of two functions.
"use strict";

// eslint-disable-next-line no-unused-vars
const languageModelLoading = (() => {
  const folder = document.currentScript.src.replace(/[^/]*$/, "");
  const PATIENCE = 20000; // milliseconds that weights may take
  const registered = new Map(); // scheme → what its file registered
  const tries = new Map(); // scheme → how often its file was asked for
  globalThis.registerLanguageModel = (stored) => registered.set(stored.scheme, stored);

  /** A promise of the stored weights of a model. */
  function storedWeights(scheme) {
    if (registered.has(scheme)) return Promise.resolve(registered.get(scheme));
    const tried = tries.get(scheme) ?? 0;
    tries.set(scheme, tried + 1);
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const fail = (what) => reject(new Error(`The weights of this scheme ${what}.`));
      const waiting = setTimeout(fail, PATIENCE, `have not arrived after ${PATIENCE / 1000} seconds`);
      script.onload = () => {
        clearTimeout(waiting);
        if (registered.has(scheme)) resolve(registered.get(scheme));
        else fail("arrived damaged"); // the file is there, and did not run to its end
      };
      script.onerror = () => {
        clearTimeout(waiting);
        fail("could not be loaded");
      };
      script.src = `${folder}${scheme}.js${tried ? `?${tried}` : ""}`; // a browser would keep the damaged file
      document.head.append(script);
    });
  }

  /** A worker and the questions that it has not answered yet. */
  class Helper {
    constructor() {
      const text = `"use strict";(${languageModelWorker})((${languageModels})(), self)`;
      try {
        this.worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      } catch {
        throw new Error("This browser does not let a page start a worker, so the model cannot run.");
      }
      this.asked = 0;
      this.waiting = new Map(); // number of a question → what to do with its answer
      this.loading = new Map(); // scheme → promise of its sizes
      this.sizes = new Map(); // scheme → sizes, once it can be asked
      this.worker.onmessage = ({ data }) => {
        const { resolve, reject } = this.waiting.get(data.id);
        this.waiting.delete(data.id);
        if (data.error) reject(new Error(data.error));
        else resolve(data);
      };
      this.worker.onerror = () => {
        this.stopped = new Error("The model has stopped working. Please reload the page.");
        for (const { reject } of this.waiting.values()) reject(this.stopped);
        this.waiting.clear();
      };
    }

    /** A promise of the answer; `what` is the name of a task in worker.js. */
    ask(what, message) {
      if (this.stopped) return Promise.reject(this.stopped);
      const id = ++this.asked;
      return new Promise((resolve, reject) => {
        this.waiting.set(id, { resolve, reject });
        this.worker.postMessage({ id, what, ...message });
      });
    }

    /** A promise of the model's sizes. After a failure the next call tries again. */
    load(scheme) {
      if (!this.loading.has(scheme)) this.loading.set(scheme, this.fetch(scheme));
      return this.loading.get(scheme);
    }

    async fetch(scheme) {
      try {
        const stored = await storedWeights(scheme);
        this.sizes.set(scheme, await this.ask("load", { stored }));
        return this.sizes.get(scheme);
      } catch (error) {
        registered.delete(scheme);
        this.loading.delete(scheme);
        throw error;
      }
    }
  }

  return { Helper };
})();
