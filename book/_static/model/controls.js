// Names, numbers in words, and native controls with their labels.
"use strict";

// eslint-disable-next-line no-unused-vars
const languageModelControls = (() => {
  const { html } = languageModelCharts;

  /** Each scheme: its name, how position enters, and its style in charts. */
  const SCHEMES = {
    none: { name: "no scheme", style: "s2" },
    sinusoidal: { name: "sinusoids", mechanism: "added", style: "s1" },
    learned: { name: "learned table", mechanism: "added", style: "s3" },
    rope: { name: "RoPE", mechanism: "rotation", style: "s0" },
    alibi: { name: "ALiBi", mechanism: "bias", style: "s4" },
    t5: { name: "T5", mechanism: "learned bias", style: "s5" },
  };

  const NAMES = { "\n": "⏎", " ": "␣", "\t": "⇥" };

  /** A character as it is shown: what cannot be seen gets a sign. */
  const sign = (symbol) => NAMES[symbol] ?? (/[\p{C}\p{Z}]/u.test(symbol) ? "�" : symbol);
  const percent = (share) => (share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`);
  const tenths = (share) => (share > 0 && share < 0.001 ? "<0.1%" : `${(100 * share).toFixed(1)}%`);
  const thousands = (number) => Math.round(number).toLocaleString("en");
  const nats = (loss) => (Number.isFinite(loss) ? loss.toFixed(2) : "–");

  /** The mean of those values that are numbers. */
  function average(values) {
    const known = Array.from(values).filter(Number.isFinite);
    return known.reduce((a, b) => a + b, 0) / known.length;
  }

  /** The places of the largest values, the largest first. */
  const largest = (values) => Array.from(values.keys()).sort((a, b) => values[b] - values[a]);

  /** A control inside its label. */
  const labelled = (words, control, ...more) => html("label", {}, html("span", {}, words), control, ...more);

  /** options: [[value, words], ...]. Browsers restore what was chosen, but not the text: hence no autocomplete. */
  function select(options, value) {
    const entries = options.map(([key, words]) => html("option", { value: key }, words));
    const control = html("select", { autocomplete: "off" }, ...entries);
    control.value = value;
    return control;
  }

  const numbered = (n) => Array.from({ length: n }, (_, i) => [i, String(i + 1)]);

  /** Let a menu offer the numbers 1 to n; what is chosen stays chosen. */
  function offer(control, n) {
    if (control.length === n) return;
    const { value } = control;
    control.replaceChildren(...select(numbered(n), value).children);
    control.value = value;
  }

  /** A slider in its label, with its value beside it; describe(value) puts the value into words. */
  function slider(words, { min = 0, max, value, describe }) {
    const control = html("input", { type: "range", min, max, value, autocomplete: "off" });
    const shown = html("b", { "aria-hidden": "true" });
    control.showValue = () => {
      const description = describe(+control.value);
      control.setAttribute("aria-valuetext", description);
      shown.textContent = description;
    };
    control.addEventListener("input", control.showValue);
    control.showValue();
    return { control, label: labelled(words, control, shown) };
  }

  /** A button; pressed() is called for each press. */
  function button(words, pressed, attributes) {
    const control = html("button", { type: "button", ...attributes }, words);
    control.addEventListener("click", pressed);
    return control;
  }

  const fold = (words, ...children) =>
    html("details", { class: "model-fold" }, html("summary", {}, words), ...children);

  return {
    SCHEMES,
    sign,
    percent,
    tenths,
    thousands,
    nats,
    average,
    largest,
    labelled,
    select,
    numbered,
    offer,
    slider,
    button,
    fold,
  };
})();
