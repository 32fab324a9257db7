// The search page. PAGES and Stemmer come from search-index.js, which book/_ext/search_index.py writes.
// An entry is a section, a term of the glossary or a documented name; BM25 ranks them by the words in their
// titles and texts. Exact names come first: terms of the glossary, functions of the library.
"use strict";

const SHOWN = 30; // results
const SATURATION = 1.3; // of BM25: how soon more of the same word adds nothing,
const LENGTH = 0.2; // and how much a long text counts against an entry
const TITLE = 12; // a word in the title counts as often as this in the text,
const PAGE = 1.5; // and one in the title of the page as often as this: a section on RoPE seldom names it
const KIND = { chapter: 1, glossary: 0.6, page: 0.5, reference: 0.25 };
const HOME = 1.3; // for the chapter that derives a term of the glossary in the query
const COMMON = 0.5; // for sections as "Summary", which every chapter has
const OPENING = 0.8; // for a page up to its first section: it touches on all that its sections say more about
const STOP = new Set(
  `a about an and are as at be but by can could did do does for from had has have how i if in instead into is it
  its may me my no not of on or so such than that the their them then there these they this to up use used using
  versus vs was we were what when where which who why will with would you your`.split(/\s+/),
);
const ALIKE = { norm: "normal", rotary: "rotate", multiple: "several" }; // words for the same thing

const stemmer = new Stemmer();
const same = new Map(Object.entries(ALIKE).map((pair) => pair.map((word) => stemmer.stemWord(word))));
const stems = new Map();
function stem(word) {
  if (!stems.has(word)) {
    const stemmed = stemmer.stemWord(word);
    stems.set(word, same.get(stemmed) ?? stemmed);
  }
  return stems.get(word);
}

// Signs that formulas have a name for: α is found as "alpha", and \alpha is shown as α.
const SIGNS = Object.fromEntries(
  `varphi φ varepsilon ε vartheta θ alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ
  lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ chi χ psi ψ omega ω Delta Δ Phi Φ Omega Ω
  sqrt √ sum Σ prod Π partial ∂ infty ∞ cdot · times × odot ⊙ pm ± le ≤ leq ≤ ge ≥ geq ≥ ne ≠ approx ≈ in ∈ to →
  mapsto ↦ top ᵀ dots … ldots … cdots … langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉`
    .match(/\w+ \S/g)
    .map((pair) => pair.split(" ")),
);
const NAMES = new Map(Object.entries(SIGNS).map(([name, sign]) => [sign, name]));
const pretty = (text) => text.replace(/\\([a-zA-Z]+) ?/g, (_, name) => SIGNS[name] ?? `${name} `);

/** The words of a text, in lower case. One with a hyphen is two, and "LayerNorm" is "layer norm" too. */
function split(text) {
  const parts = (word) => {
    const pieces = word.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}\p{Ll}+/gu) ?? [];
    const whole = pieces.join("") === word && pieces.every((part) => part.length > 2);
    return whole && pieces.length > 1 ? [word, ...pieces] : [word];
  };
  const words = text
    .replace(/(\d),(?=\d{3})/g, "$1")
    .replace(/[α-ω√]/g, (sign) => ` ${NAMES.get(sign) ?? sign}`)
    .match(/[\p{L}\p{N}_]+/gu);
  return (words ?? []).flatMap(parts).map((word) => word.toLowerCase());
}
const terms = (text) => split(text).map(stem);
const one = (word) => word.replace(/^norms?$/, "normalization").replace(/ies$/, "y").replace(/(?<=[^s])s$/, "");
const singular = (text) => split(text).map(one);

// --- the index

const entries = Object.entries(PAGES).flatMap(([name, [number, page, rows]]) =>
  rows.map(([title, anchor, kind, text, homes]) => ({
    name,
    homes, // of a term of the glossary: the pages that its entry names
    address: `${name}.html${anchor && "#"}${anchor}`,
    page: number ? `${number}. ${page}` : page,
    own: anchor === "", // the page itself, up to its first section
    title,
    kind,
    text,
  })),
);
const subjects = new Map(); // the words of a page's title, and of the terms that it derives
for (const { name, page, title, homes } of entries) {
  if (!subjects.has(name)) subjects.set(name, [page]);
  for (const home of homes ?? []) subjects.set(home, [...(subjects.get(home) ?? []), title]);
}
const titles = new Map(); // how many sections have a title
for (const { title } of entries) titles.set(title, (titles.get(title) ?? 0) + 1);
const having = new Map(); // which entries have a word
for (const entry of entries) {
  entry.counts = new Map();
  const add = (term, weight) => entry.counts.set(term, (entry.counts.get(term) ?? 0) + weight);
  const count = (text, weight) => {
    const all = terms(text);
    for (const term of all) add(term, weight);
    return all.length;
  };
  entry.length = count(entry.text, 1) + count(entry.title, TITLE);
  if (!entry.own) for (const term of new Set(terms(subjects.get(entry.name).join(" ")))) add(term, PAGE);
  entry.weight = KIND[entry.kind] * (titles.get(entry.title) > 3 ? COMMON : 1) * (entry.own ? OPENING : 1);
  for (const term of entry.counts.keys()) {
    if (!having.has(term)) having.set(term, new Set());
    having.get(term).add(entry);
  }
}
const mean = entries.reduce((sum, entry) => sum + entry.length, 0) / entries.length;
const rarity = (count) => Math.log(1 + (entries.length - count + 0.5) / (count + 0.5));

/** Whether one word becomes the other by one letter more, less, other, or exchanged with its neighbour. */
function near(a, b) {
  if (a.length > b.length) [a, b] = [b, a];
  if (b.length - a.length > 1) return false;
  let k = 0;
  while (k < a.length && a[k] === b[k]) k += 1;
  if (a.length < b.length) return a.slice(k) === b.slice(k + 1);
  const exchanged = a[k] === b[k + 1] && a[k + 1] === b[k] && a.slice(k + 2) === b.slice(k + 2);
  return exchanged || a.slice(k + 1) === b.slice(k + 1);
}

/** The stems that match a word of the query: its own; if it does not occur, those of its parts or of similar words. */
function meant(word) {
  const term = stem(word);
  if (having.has(term)) return [[term]];
  for (let k = 3; k <= word.length - 3; k += 1) {
    const parts = [stem(word.slice(0, k)), stem(word.slice(k))];
    if (parts.every((part) => having.has(part))) return parts.map((part) => [part]);
  }
  const known = [...stems.keys()].filter((other) => having.has(stem(other)));
  const like = (wanted) => [...new Set(known.filter(wanted).map(stem))];
  const bare = like((other) => other.replaceAll("_", "") === word);
  if (bare.length || word.length < 3) return [bare];
  const begun = like((other) => other.startsWith(word));
  return [begun.length || word.length < 4 ? begun : like((other) => near(word, other))];
}

// --- a query

/** Terms of the glossary within a query: the longest where they overlap, none within a hyphenated word. */
function named(query) {
  const units = query.split(/\s+/).map((unit) => singular(unit).join("-"));
  const matches = [];
  for (const entry of entries.filter(({ kind }) => kind === "glossary")) {
    const match = ` ${units.join(" ")} `.match(` ${singular(entry.title).join("[ -]")} `);
    if (match) matches.push({ entry, from: match.index, to: match.index + match[0].length });
  }
  const within = (a, b) => a.from >= b.from && a.to <= b.to && a.to - a.from < b.to - b.from;
  return matches
    .filter((one) => !matches.some((other) => within(one, other)))
    .sort((a, b) => a.from - b.from)
    .map(({ entry }) => entry);
}

/** What is documented under a name that is no ordinary word: `apply_rope`, `KVCache`, `lib.rope.apply_rope()`. */
function documented(query) {
  const name = query.toLowerCase().replace(/^lib\.\w+\.|\(\)$/g, "");
  const documents = ({ kind, title }) => kind === "reference" && title.toLowerCase() === name;
  return entries.filter((entry) => documents(entry) && /[_.]|\p{L}\p{Lu}/u.test(entry.title));
}

/** All entries that a query finds, the best first. */
function search(query) {
  const all = split(query);
  const telling = all.filter((word) => !STOP.has(word));
  const asked = [...new Set(telling.length ? telling : all)].flatMap(meant).filter((group) => group.length);
  const scores = new Map();
  let most = 0;
  for (const group of asked) {
    const matching = new Set(group.flatMap((term) => [...having.get(term)]));
    const worth = rarity(matching.size);
    most += worth;
    for (const entry of matching) {
      const count = group.reduce((sum, term) => sum + (entry.counts.get(term) ?? 0), 0);
      const slow = SATURATION * (1 - LENGTH + (LENGTH * entry.length) / mean);
      const { score, share } = scores.get(entry) ?? { score: 0, share: 0 };
      scores.set(entry, { score: score + (worth * count) / (count + slow), share: share + worth });
    }
  }
  const terms = named(query);
  const homes = new Set(terms.flatMap((entry) => entry.homes));
  const first = [...documented(query), ...terms];
  const rank = ([entry, { score, share }]) =>
    score * (share / most) ** 2 * entry.weight * (homes.has(entry.name) ? HOME : 1);
  const rest = [...scores]
    .filter(([entry, { share }]) => share > 0.5 * most && !first.includes(entry))
    .sort((a, b) => rank(b) - rank(a))
    .map(([entry]) => entry);
  return { results: [...first, ...rest], asked: new Set(asked.flat()) };
}

// --- the page

/** The part of a text with most of the words that were asked for, as nodes in which these are marked. */
function excerpt(text, asked, length = 240) {
  const hits = [];
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{N}_]+/gu)) {
    const matched = terms(word).filter((term) => asked.has(term));
    if (matched.length) hits.push({ from: index, to: index + word.length, matched });
  }
  let best = { from: 0, worth: 0 };
  for (const { from } of hits) {
    const within = hits.filter((hit) => hit.from >= from && hit.to <= from + length - 40);
    const matched = new Set(within.flatMap((hit) => hit.matched));
    const worth = [...matched].reduce((sum, term) => sum + rarity(having.get(term).size), 0);
    if (worth > best.worth) best = { from, worth };
  }
  const start = best.from < 60 ? 0 : text.indexOf(" ", best.from - 40) + 1;
  const end = start + length < text.length ? text.lastIndexOf(" ", start + length) : text.length;
  const nodes = [start ? "… " : ""];
  let at = start;
  for (const { from, to } of hits.filter((hit) => hit.from >= start && hit.to <= end)) {
    nodes.push(text.slice(at, from), make("mark", "", text.slice(from, to)));
    at = to;
  }
  return [...nodes, text.slice(at, end), end < text.length ? " …" : ""];
}

function make(name, className, ...inside) {
  const node = document.createElement(name);
  node.className = className;
  node.append(...inside);
  return node;
}

function show(query) {
  const { results, asked } = search(query);
  const many = results.length > SHOWN ? `The best ${SHOWN} of ${results.length}` : results.length;
  document.querySelector("p.search-summary").textContent = results.length
    ? `${many} ${results.length === 1 ? "result" : "results"} for “${query}”`
    : `Nothing found for “${query}”. Other words may help, or the glossary.`;
  const items = results.slice(0, SHOWN).map((entry) => {
    const link = make("a", "", entry.own ? entry.page : pretty(entry.title));
    link.href = entry.address;
    const where = make("span", "where", entry.own ? "" : entry.page);
    return make("li", "", link, " ", where, make("p", "context", ...excerpt(pretty(entry.text), asked)));
  });
  document.querySelector("ul.search").replaceChildren(...items);
}

const query = new URLSearchParams(location.search).get("q")?.trim() ?? "";
const field = document.querySelector("main form.bd-search input");
field.value = query;
field.focus();
field.select();
if (query) show(query);
