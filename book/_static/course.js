// MathJax would typeset a whole page before anything else may happen on it, two seconds for a long
// chapter. Here it takes a few formulas at a time: those in view, then the others from top to bottom.
// In between, the page is drawn, scrolls and answers. `MathJax.startup.promise` waits for the last.
const AT_A_TIME = 24;
const parsed = new Promise((go) => document.addEventListener("DOMContentLoaded", go));
const typesetInTurn = async () => {
  const inView = (formula) => {
    const { width, top, bottom } = formula.getBoundingClientRect();
    return width && bottom > 0 && top < innerHeight;
  };
  await parsed;
  // With the next frame, a link into the page scrolls there. A page in the background draws none.
  await new Promise((go) => [requestAnimationFrame(go), setTimeout(go, 500)]);
  const waiting = new Set(document.querySelectorAll(".math"));
  while (waiting.size) {
    await new Promise((go) => setTimeout(go));
    const seen = [...waiting].filter(inView);
    const next = (seen.length ? seen : [...waiting]).slice(0, AT_A_TIME);
    await MathJax.typesetPromise(next);
    next.forEach((formula) => waiting.delete(formula));
  }
  await MathJax.typesetPromise(); // what is left: formulas in what a cell shows have no class
};
if (window.MathJax) {
  MathJax.startup = { pageReady: typesetInTurn };
}
// A browser may break the line between a formula and the comma behind it. These keep together.
// (The printed book calls this too: tools/paper.js.)
function holdSigns(article) {
  for (const formula of article?.querySelectorAll("span.math") ?? []) {
    const text = formula.nextSibling;
    const sign = text?.nodeType === Node.TEXT_NODE && /^[^\s\w]+/.exec(text.data);
    if (sign) {
      text.splitText(sign[0].length);
      const held = document.createElement("span");
      held.className = "held";
      formula.replaceWith(held);
      held.append(formula, text);
    }
  }
}
// Printed pages are light, and long code may be split over two sheets.
window.addEventListener("beforeprint", () => {
  document.documentElement.dataset.before = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  for (const code of document.querySelectorAll(".bd-article pre")) {
    code.classList.toggle("long", code.textContent.split("\n").length > 16);
  }
});
window.addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = document.documentElement.dataset.before;
});
// The contents beside the text mark the section that is being read: the last one whose heading is above a
// line in the upper part of the window. They follow every scroll and every change of the layout.
function followReader(contents) {
  const entries = [...contents.querySelectorAll("a")].flatMap((link) => {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return section ? [{ link, heading: section.querySelector("h1, h2, h3, h4") ?? section }] : [];
  });
  let marked;
  const mark = () => {
    const top = ({ heading }) => heading.getBoundingClientRect().top;
    let current = entries.findLast((entry) => top(entry) < 0.3 * innerHeight);
    if (innerHeight + scrollY >= document.documentElement.scrollHeight - 2) {
      // At the end of the page the last sections cannot come further up: the one that was chosen, or the last.
      const inView = entries.filter((entry) => top(entry) < innerHeight);
      const chosen = inView.find(({ link }) => link.hash === location.hash);
      current = chosen ?? (scrollY > 0 ? inView.at(-1) : undefined) ?? current;
    }
    if (current?.link === marked) return;
    marked = current?.link;
    for (const { link } of entries) {
      link.classList.toggle("active", link === marked);
      if (link === marked) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
    for (const item of contents.querySelectorAll(".toc-entry")) {
      item.classList.toggle("active", item.contains(marked ?? null));
    }
    reveal();
  };
  // The list may be longer than the window, and scrolls in itself.
  const reveal = () => {
    const frame = contents.closest(".bd-sidebar-secondary, dialog");
    if (!frame || !marked) return;
    const [outer, inner] = [frame, marked].map((node) => node.getBoundingClientRect());
    if (inner.top < outer.top) frame.scrollTop -= outer.top - inner.top + 40;
    if (inner.bottom > outer.bottom) frame.scrollTop += inner.bottom - outer.bottom + 40;
  };
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark();
    });
  };
  for (const event of ["scroll", "resize", "hashchange"]) addEventListener(event, soon, { passive: true });
  new ResizeObserver(soon).observe(document.body);
  // On a narrow window they are in a drawer over the text, which closes once a section is chosen.
  document.querySelector(".secondary-toggle")?.addEventListener("click", () => requestAnimationFrame(reveal));
  contents.addEventListener("click", (event) => {
    const drawer = contents.closest("dialog[open]");
    const chosen = entries.find(({ link }) => link.contains(event.target));
    if (!drawer || !chosen) return;
    drawer.addEventListener(
      "close",
      () => {
        chosen.heading.tabIndex = -1; // here the keyboard goes on, not at the button of the drawer
        chosen.heading.focus({ preventScroll: true });
      },
      { once: true },
    );
    drawer.close();
  });
}
// The definition of a term, beside its link: under the mouse and with the keyboard's focus. The box
// stays while the mouse is on it, and Escape closes it. A finger follows the link.
function explainTerms(links) {
  const tip = document.createElement("div");
  tip.className = "term-tip";
  tip.id = "term-tip";
  tip.role = "tooltip";
  tip.hidden = true;
  document.querySelector("main").append(tip);
  const definitions = new Map();
  for (const link of links) {
    definitions.set(link, link.title);
    link.removeAttribute("title"); // the browser would show it too
  }
  let shown;
  let leaving;
  const hide = () => {
    clearTimeout(leaving);
    shown?.removeAttribute("aria-describedby");
    shown = undefined;
    tip.hidden = true;
  };
  const place = () => {
    const line = shown.getClientRects()[0]; // a link may be split over two lines
    const { width, height } = tip.getBoundingClientRect();
    const below = line.bottom + height + 12 < innerHeight;
    const left = Math.max(16, Math.min(line.left, document.documentElement.clientWidth - width - 16));
    const from = tip.offsetParent.getBoundingClientRect();
    tip.style.left = `${left - from.left}px`;
    tip.style.top = `${(below ? line.bottom + 6 : line.top - height - 6) - from.top}px`;
  };
  const show = async (link) => {
    clearTimeout(leaving);
    if (link === shown) return;
    hide();
    shown = link;
    tip.textContent = definitions.get(link);
    link.setAttribute("aria-describedby", tip.id);
    tip.hidden = false;
    if (tip.textContent.includes("\\(") && window.MathJax?.typesetPromise) {
      tip.style.visibility = "hidden"; // the box would change its size and place under the mouse
      await MathJax.typesetPromise([tip]);
      if (shown !== link) return;
    }
    tip.style.visibility = "";
    place();
  };
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 200); // time to move the mouse into the box
  };
  for (const link of links) {
    link.addEventListener("pointerenter", ({ pointerType }) => pointerType === "mouse" && show(link));
    link.addEventListener("pointerleave", leave);
    link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
    link.addEventListener("blur", hide);
  }
  tip.addEventListener("pointerenter", () => clearTimeout(leaving));
  tip.addEventListener("pointerleave", leave);
  addEventListener("keydown", ({ key }) => key === "Escape" && hide());
}
window.addEventListener("load", () => {
  const terms = document.querySelectorAll("a.term");
  if (terms.length) explainTerms(terms);
  const contents = document.getElementById("on-this-page");
  if (contents) followReader(contents);
  // A formula wider than its place scrolls inside itself. Then the keyboard must be able to reach it.
  const reachable = () => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"]')) {
      if (formula.scrollWidth > formula.clientWidth) {
        formula.tabIndex = 0;
      } else {
        formula.removeAttribute("tabindex");
      }
    }
  };
  // "Back to top" floats over the text. The bar above the text stays in view and has room for it.
  const toTop = document.getElementById("pst-back-to-top");
  if (toTop) document.querySelector(".header-article-items__start > *")?.append(toTop);
  // The arrow on a button that folds an answer away adds nothing to the button's text.
  for (const arrow of document.querySelectorAll(".toggle-button svg")) {
    arrow.setAttribute("aria-hidden", "true");
  }
  window.MathJax?.startup?.promise?.then(() => {
    holdSigns(document.querySelector(".bd-article"));
    reachable();
    new ResizeObserver(reachable).observe(document.body);
  });
});
