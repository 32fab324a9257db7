// A formula wider than its place scrolls inside itself. Then the keyboard must be able to reach it.
window.addEventListener("load", () => {
  const reachable = () => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"]')) {
      if (formula.scrollWidth > formula.clientWidth) {
        formula.tabIndex = 0;
      } else {
        formula.removeAttribute("tabindex");
      }
    }
  };
  window.MathJax?.startup?.promise?.then(() => {
    reachable();
    new ResizeObserver(reachable).observe(document.body);
  });
});
