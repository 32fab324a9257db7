((script, data) => {
const figure = script.closest(".slider-figure"), svg = figure.querySelector("svg"),
  [text, kind, rank, layer, head, query] = figure.querySelectorAll("input,select"),
  [about, attends] = figure.querySelectorAll("output"),
  [map, chosen, weights, row, numbers, queries, keys] =
    ["map", "chosen", "weights", "row", "numbers", "queries", "keys"]
      .map(name => [...svg.querySelector(`[data-group=${name}]`).children]),
  stored = data.weights.map(atob),
  heads = +head.max + 1,
  fill = (words, values) => words.replace(/{(\w+)}/g, (_, name) => values[name]),
  start = m => m * (m + 1) / 2;
function set(element, values) {
  for (const name in values) element.setAttribute(name, values[name]);
}
function write(element, words) {
  if (element.textContent != words) element.textContent = words;
}
function show() {
  const tokens = data.tokens[text.value], k = +kind.value, m = +query.value,
    at = layer.value * heads + +head.value,
    percent = i => stored[text.value].charCodeAt(at * weights.length + i),
    counted = new Set(data.counted[text.value][k]),
    [first, last] = [weights[start(m)], weights[start(m) + m]];
  rank.value = data.order[k].indexOf(at);
  map.forEach((cell, i) => set(cell, {"fill-opacity": data.scores[k][i] / 100}));
  for (const name of ["x", "y"]) chosen[0].setAttribute(name, map[at].getAttribute(name));
  weights.forEach((cell, i) => set(cell,
    {class: counted.has(i) ? "cell s0 counted" : "cell s0", "fill-opacity": data.depths[percent(i)]}));
  const number = (cell, name) => +cell.getAttribute(name);
  set(row[0], {y: first.getAttribute("y"), height: first.getAttribute("height"),
    width: +(number(last, "x") + number(last, "width") - number(first, "x")).toFixed(1)});
  const named = tokens.map((token, n) => n > m ? "" :
      fill(data.words.key, {n, token, percent: percent(start(m) + n)})),
    order = tokens.map((_, n) => n).slice(0, m + 1).filter(n => percent(start(m) + n))
      .sort((a, b) => percent(start(m) + b) - percent(start(m) + a)).slice(0, data.most);
  tokens.forEach((token, n) => {
    write(queries[n], token);
    write(keys[n], token);
    write(numbers[n], n > m ? "" : String(percent(start(m) + n)));
    numbers[n].setAttribute("y", queries[m].getAttribute("y"));
  });
  const values = {layer: layer.value, head: head.value, kind: data.kinds[k], score: data.scores[k][at],
    equal: data.equal[k], m, token: tokens[m]};
  for (const input of [rank, layer, head, query]) {
    const words = String(+input.value + (input == rank));
    input.setAttribute("aria-valuetext", words);
    write(input.nextSibling, words);
  }
  write(about, fill(data.words.head, values));
  write(attends, fill(data.words.row, {...values, keys: order.map(n => named[n]).join(", ")}));
  svg.setAttribute("aria-label", fill(data.words.picture, {...values, keys: named.slice(0, m + 1).join(", ")}));
}
function choose(at) { layer.value = Math.floor(at / heads); head.value = at % heads; show(); }
for (const input of [text, kind, rank, layer, head, query]) {
  input.disabled = false;
  input.addEventListener("input", input == rank ? () => choose(data.order[kind.value][rank.value]) : show);
}
svg.addEventListener("click", event => {
  const at = map.indexOf(event.target);
  if (at >= 0) choose(at);
});
svg.addEventListener("pointerover", event => {
  const cell = weights.indexOf(event.target),
    m = cell < 0 ? Math.max(queries.indexOf(event.target), keys.indexOf(event.target))
      : Math.floor((Math.sqrt(8 * cell + 1) - 1) / 2);
  if (m >= 0) { query.value = m; show(); }
});
figure.querySelector(".note").hidden = true;
show();
})
