// Makes a book of the built pages, inside Chromium (tools/paper.py): they are fetched, cleaned of what
// only a screen can use, and their links are turned into links within the book.

// Parts of a page that do not belong in a book.
const LEFT_OUT = [
  "script", "a.headerlink", "button", ".take-away", ".only-site", ".way-in", ".toctree-wrapper",
  ".questions > style", ".slider-figure > style", ".slider-figure label", ".slider-figure .note",
].join(",");
const LONG = 16; // lines of code that may be split over two pages
// Attributes whose value is the name of an element, or several.
const REFERS = ["aria-labelledby", "aria-describedby", "aria-controls", "for", "headers"];

const prefix = (page) => page.replace(/^book\//, "").replaceAll("/", "-");

/** One built page as an article: cleaned, with names and links made by `naming` (see below). */
async function collect(page, naming) {
  const address = new URL(`/${page}.html`, location.origin);
  const source = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  const article = document.importNode(source.querySelector("article.bd-article"), true);
  article.paint = [...article.querySelectorAll(".slider-figure > style")].map((node) => node.textContent);
  for (const node of article.querySelectorAll(LEFT_OUT)) node.remove();
  for (const form of article.querySelectorAll(".questions fieldset")) {
    const choices = document.createElement("ol");
    choices.type = "A";
    for (const label of form.querySelectorAll("label")) {
      const choice = document.createElement("li");
      choice.append(...label.querySelector("span").childNodes);
      choices.append(choice);
    }
    const asked = document.createElement("p");
    asked.className = "asked";
    asked.append(...form.querySelector("legend").childNodes);
    form.replaceWith(asked, ...form.querySelectorAll("pre"), choices);
  }
  for (const check of article.querySelectorAll("details.check")) { // its code is on the site
    const line = document.createElement("p");
    line.className = "check";
    line.append(...check.querySelector("summary").childNodes);
    check.replaceWith(line);
  }
  for (const fold of article.querySelectorAll("details.proof-fold")) {
    fold.querySelector("summary").remove();
    fold.replaceWith(...fold.childNodes);
  }
  for (const folded of article.querySelectorAll("details.above-input")) {
    folded.closest(".cell").classList.remove("tag_hide-cell"); // the style of print leaves these out
    folded.remove(); // folded code is on the site
  }
  for (const details of article.querySelectorAll("details")) details.open = true;
  holdSigns(article);
  // a link to the page itself leads to its beginning
  article.id = naming.id(page, "");
  for (const node of article.querySelectorAll("[id]")) node.id = naming.id(page, node.id);
  for (const node of article.querySelectorAll("a[name]")) node.removeAttribute("name");
  // A heading goes to the next sheet with what follows it. The beginning of its section may stay behind, so
  // the heading itself is what links and contents lead to.
  for (const heading of article.querySelectorAll("section[id] > :is(h1, h2, h3, h4)")) {
    const section = heading.parentElement;
    heading.prepend(...[...section.children].filter((node) => node.matches("span[id]:empty")));
    heading.id ||= section.id;
    if (heading.id === section.id) section.removeAttribute("id");
  }
  for (const node of article.querySelectorAll("*")) {
    for (const attribute of REFERS) {
      const value = node.getAttribute(attribute);
      if (value) node.setAttribute(attribute, value.split(/\s+/).map((id) => naming.id(page, id)).join(" "));
    }
    for (const attribute of node.attributes) {
      if (attribute.value.includes("url(#")) {
        attribute.value = attribute.value.replace(/url\(#([^)]+)\)/g, (_, id) => `url(#${naming.id(page, id)})`);
      }
    }
  }
  for (const image of article.querySelectorAll("img")) {
    image.src = new URL(image.getAttribute("src"), address).href;
    image.removeAttribute("loading");
  }
  for (const link of article.querySelectorAll("a[href]")) {
    const target = new URL(link.getAttribute("href"), address);
    if (target.origin !== location.origin) continue;
    const name = decodeURIComponent(target.pathname).slice(1).replace(/\.html$/, "");
    const within = naming.href(page, name, decodeURIComponent(target.hash).slice(1));
    const elsewhere = naming.site && new URL(target.pathname.slice(1) + target.hash, naming.site).href;
    if (within ?? elsewhere) {
      link.setAttribute("href", within ?? elsewhere);
      link.removeAttribute("target");
    } else {
      link.replaceWith(...link.childNodes); // nothing in the book, and no site to lead to
    }
  }
  for (const link of article.querySelectorAll("a[title]")) link.title = plain(link.title);
  for (const figure of article.querySelectorAll(".slider-figure")) {
    figure.removeAttribute("role");
    figure.insertAdjacentHTML("beforeend", `<p class="only-book">${naming.words.figure}</p>`);
  }
  return article;
}

/** The part of the first page that a book needs: its introduction and the map. */
function opening(article, words) {
  const map = article.querySelector("svg.course-map");
  for (const section of article.querySelectorAll("section section")) {
    if (!section.contains(map)) section.remove();
  }
  map.nextElementSibling.remove(); // the same in words
  article.querySelector("h1").textContent = words.about;
  return article;
}

/** The headings of a page's sections. */
const sections = (article) => article.querySelectorAll("article > section > section > h2");

/** A command of TeX in plain text: a letter or a sign as itself, any other by its name. */
function sign(name) {
  const written = new DOMParser().parseFromString(MathJax.tex2mml(`\\${name}`), "text/xml").documentElement.textContent;
  return /^\s*\S\s*$/u.test(written) ? written.trim() : `${name} `;
}

/** A text in which formulas are marked as for MathJax, as plain text. */
function plain(text) {
  const formula = (_, tex) =>
    tex
      .replace(/\\(?:operatorname|mathrm|text)\b/g, "")
      .replace(/\\([a-zA-Z]+)/g, (_, name) => sign(name))
      .replace(/\^\{([^{}]+)\}/g, "^($1)")
      .replace(/[{}]/g, "");
  return text.replace(/\\\((.*?)\\\)/gs, formula).trim().replace(/\s+/g, " ");
}

/** A heading in plain text. To be called before its formulas are typeset. */
const titleOf = (heading) => plain(heading.textContent);

/** The headings to list in the contents: not those that every chapter has, such as "Summary". */
const telling = (entries, title) => {
  const all = entries.map(title);
  return entries.filter((entry) => all.filter((other) => other === title(entry)).length <= 3);
};

/** Everything as one document, in this page, for print. */
async function assemble(book) {
  const known = new Set(book.pages.map((page) => page.name));
  const naming = {
    words: book.words,
    site: book.site,
    id: (page, id) => `${prefix(page)}--${id || "top"}`,
    href: (page, name, id) => (known.has(name) ? `#${naming.id(name, id)}` : null),
  };
  const body = document.createElement("body");
  body.className = "paper";
  const front = document.createElement("header");
  front.className = "front";
  front.innerHTML = book.front;
  const contents = document.createElement("nav");
  contents.className = "paper-contents";
  contents.innerHTML = `<h1>${book.words.contents}</h1>`;
  body.append(front, contents);
  const styles = [];
  const painted = new Set(); // most figures have the same style
  let part = "";
  for (const [number, page] of book.pages.entries()) {
    const article = await collect(page.name, naming);
    if (number === 0) opening(article, book.words);
    article.paint.forEach((style) => painted.add(style));
    article.classList.add("leaf");
    for (const code of article.querySelectorAll("pre")) {
      code.classList.toggle("long", code.textContent.split("\n").length > LONG);
    }
    const title = article.querySelector("h1").textContent.trim();
    styles.push(
      `@page leaf${number} { @top-right { content: ${JSON.stringify(title)}; } }`,
      `#${CSS.escape(article.id)} { page: leaf${number}; }`,
    );
    if (page.part && page.part !== part) contents.insertAdjacentHTML("beforeend", `<h2>${page.part}</h2>`);
    part = page.part;
    const list = document.createElement("ol");
    const line = (heading, level) => {
      const name = heading.cloneNode(true);
      const target = level ? heading.id : article.id;
      list.insertAdjacentHTML(
        "beforeend",
        `<li class="level${level}"><a href="#${target}"><span>${name.innerHTML}</span><b data-of="${target}"></b></a></li>`,
      );
      list.lastChild.dataset.title = titleOf(heading);
    };
    line(article.querySelector("h1"), 0);
    for (const heading of page.sections ? sections(article) : []) line(heading, 1);
    contents.append(list);
    body.append(article);
  }
  const listed = [...contents.querySelectorAll("li.level1")];
  const kept = new Set(telling(listed, (entry) => entry.dataset.title));
  for (const entry of listed) if (!kept.has(entry)) entry.remove();
  document.head.insertAdjacentHTML("beforeend", `<style>${[...painted, ...styles].join("\n")}</style>`);
  document.body.replaceWith(body);
  document.documentElement.dataset.theme = "light";
  await Promise.all([...document.fonts].map((font) => font.load())); // formulas are set to their size
  await MathJax.typesetPromise([body]);
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode()));
  return {
    failed: [...document.querySelectorAll("mjx-merror, [data-mjx-error]")].map((node) => node.textContent),
    bare: [...document.querySelectorAll(".math")].filter((node) => !node.querySelector("mjx-container")).length,
    contents: [...contents.querySelectorAll("li")].map((entry) => ({
      id: entry.querySelector("b").dataset.of,
      level: entry.className === "level0" ? 0 : 1,
      title: entry.dataset.title,
    })),
    broken: [...document.querySelectorAll('a[href^="#"]')]
      .map((link) => link.getAttribute("href"))
      .filter((href) => !document.getElementById(href.slice(1))),
  };
}

/** With the text as wide as on paper: what is wider is made smaller, so that paper does not cut it off, and a
 *  paragraph of three lines is marked, which has no place to be cut in two. */
function fit(width) {
  document.body.style.width = `${width}px`;
  for (const box of document.querySelectorAll(".leaf div.math, .leaf table, .leaf pre")) {
    const inside = box.querySelector("mjx-container") ?? box;
    const ratio = inside.scrollWidth / box.parentElement.clientWidth;
    if (ratio <= 1.001) continue;
    const size = parseFloat(getComputedStyle(inside).fontSize);
    inside.style.setProperty("font-size", `${(size / ratio) * 0.99}px`, "important");
  }
  for (const paragraph of document.querySelectorAll(".leaf p")) {
    const lines = paragraph.clientHeight / parseFloat(getComputedStyle(paragraph).lineHeight);
    paragraph.classList.toggle("short", lines < 3.9);
  }
  document.body.style.width = "";
}

/** Page numbers into the contents. */
function number(pages) {
  for (const node of document.querySelectorAll("b[data-of]")) node.textContent = pages[node.dataset.of] ?? "";
}

// --- the book for e-readers

const PAINT = [
  "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
  "font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline", "paint-order",
];

/** Write into each element of a drawing how it is painted: an e-reader knows no variables. */
function paint(drawing, stage) {
  const all = (svg) => [svg, ...svg.querySelectorAll("*")];
  const copy = (drawing.closest(".slider-figure") ?? drawing).cloneNode(true);
  stage.replaceChildren(copy);
  const shown = all(copy.matches("svg") ? copy : copy.querySelector("svg"));
  all(drawing).forEach((node, k) => {
    const style = getComputedStyle(shown[k]);
    const around = k ? getComputedStyle(shown[k].parentElement) : null; // what is inherited
    const said = PAINT.map((name) => [name, style.getPropertyValue(name)])
      .filter(([name, value]) => value !== around?.getPropertyValue(name))
      .map(([name, value]) => `${name}:${value.replaceAll('"', "'")}`);
    if (style.opacity !== "1") said.push(`opacity:${style.opacity}`);
    node.removeAttribute("class");
    if (said.length) node.setAttribute("style", said.join(";"));
  });
  stage.replaceChildren();
}

// Letters of another kind have characters of their own. MathML Core, which browsers and many e-readers
// draw, knows no other way to write them: each kind by its first letter, and those that Unicode had before.
const KINDS = {
  "double-struck": { A: 0x1d538, had: { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" } },
  script: { A: 0x1d49c, had: { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ" } },
  bold: { A: 0x1d400, 0: 0x1d7ce, had: {} },
};

/** A letter or digit of a kind, `undefined` if there is none. */
function letter(sign, kind) {
  const first = /[A-Z]/.test(sign) ? "A" : /[0-9]/.test(sign) ? "0" : "none";
  const start = KINDS[kind]?.[first];
  return KINDS[kind]?.had[sign] ?? (start && String.fromCodePoint(start + sign.charCodeAt(0) - first.charCodeAt(0)));
}

/** The columns of a table, which MathML Core reads from style alone. */
function align(table) {
  const sides = (table.getAttribute("columnalign") ?? "center").split(/\s+/);
  const gaps = (table.getAttribute("columnspacing") ?? "0.8em").split(/\s+/);
  const at = (values, k) => values[Math.min(k, values.length - 1)];
  for (const row of table.children) {
    [...row.children].forEach((cell, k) => {
      const side = at(sides, k); // what Chromium moves is a block, for which it has a word of its own
      const room = `padding:0.2em 0 0.2em ${k ? at(gaps, k - 1) : 0}`;
      cell.setAttribute("style", `text-align:${side};text-align:-webkit-${side};${room}`);
    });
  }
}

/** MathJax's own attributes are no MathML, and some values neither. */
function tidy(math) {
  for (const table of math.querySelectorAll("mtable")) align(table);
  for (const node of [math, ...math.querySelectorAll("*")]) {
    for (const attribute of [...node.attributes]) {
      if (/^(data-|class$)/.test(attribute.name)) node.removeAttribute(attribute.name);
    }
    const kind = node.getAttribute("mathvariant")?.replace("-tex-calligraphic", "script");
    if (!kind || kind === "normal") continue;
    const signs = [...node.textContent].map((sign) => letter(sign, kind));
    if (signs.includes(undefined)) throw new Error(`no ${kind} for "${node.textContent}"`);
    node.textContent = signs.join("");
    node.removeAttribute("mathvariant");
  }
  return math;
}

/** Each page as XHTML for an e-reader: formulas as MathML, drawings with their own colours. */
async function leaves(book) {
  const known = new Set(book.pages.map((page) => page.name));
  const file = (page) => `${prefix(page)}.xhtml`;
  const naming = {
    words: book.words,
    site: book.site,
    id: (page, id) => id || "top",
    href: (page, name, id) =>
      !known.has(name) ? null : (name === page ? "" : file(name)) + (id || name === page ? `#${id || "top"}` : ""),
  };
  document.documentElement.dataset.theme = "light";
  const style = document.createElement("style");
  const stage = document.createElement("article");
  stage.className = "bd-article";
  document.body.replaceChildren(style, stage);
  const made = [];
  const images = new Set();
  for (const [number, page] of book.pages.entries()) {
    const article = await collect(page.name, naming);
    style.textContent = article.paint.join("\n");
    if (number === 0) opening(article, book.words);
    const headings = [...sections(article)].map((heading) => ({
      id: heading.id,
      text: titleOf(heading),
    }));
    const failed = [];
    for (const node of article.querySelectorAll(".math")) {
      const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
      for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const found = /^\s*(?:\\\(([^]*)\\\)|\\\[([^]*)\\\]|\$\$([^]*)\$\$|\$([^]*)\$)\s*$/.exec(text.data);
        if (!found) continue;
        const display = found[2] !== undefined || found[3] !== undefined;
        const source = found[1] ?? found[2] ?? found[3] ?? found[4];
        const written = MathJax.tex2mml(source, { display });
        if (written.includes("merror")) failed.push(source);
        const math = tidy(new DOMParser().parseFromString(written, "text/xml").documentElement);
        math.setAttribute("alttext", source.trim());
        text.replaceWith(document.importNode(math, true));
        break;
      }
    }
    for (const drawing of article.querySelectorAll("svg")) {
      paint(drawing, stage);
      if (drawing.getAttribute("role") === "group") drawing.removeAttribute("role"); // XHTML's list is short
      for (const path of drawing.querySelectorAll("path")) {
        if (!path.getAttribute("d")) path.remove(); // drawn in other frames only
      }
      for (const link of drawing.querySelectorAll("a")) {
        const title = document.createElementNS(drawing.namespaceURI, "title");
        title.textContent = [...link.querySelectorAll("tspan")].map((node) => node.textContent).join(" ");
        link.prepend(title);
      }
    }
    for (const image of article.querySelectorAll("img")) {
      images.add(new URL(image.src).pathname);
      image.setAttribute("src", `images/${image.src.split("/").pop()}`);
    }
    for (const node of article.querySelectorAll("*")) {
      for (const attribute of [...node.attributes]) {
        if (/^(data-|on|target$)/.test(attribute.name)) node.removeAttribute(attribute.name);
      }
    }
    const section = document.implementation.createDocument("http://www.w3.org/1999/xhtml", "section", null).documentElement;
    section.setAttribute("id", "top");
    section.append(...[...article.childNodes].map((node) => section.ownerDocument.importNode(node, true)));
    made.push({
      name: page.name,
      file: file(page.name),
      title: article.querySelector("h1").textContent.trim(),
      headings: page.sections ? headings : [],
      formulas: article.querySelectorAll("math").length,
      drawings: article.querySelectorAll("svg").length,
      wanted: article.querySelectorAll(".math").length,
      failed,
      xhtml: new XMLSerializer().serializeToString(section),
    });
  }
  const kept = new Set(telling(made.flatMap((leaf) => leaf.headings), (heading) => heading.text));
  for (const leaf of made) leaf.headings = leaf.headings.filter((heading) => kept.has(heading));
  return { leaves: made, images: [...images] };
}
