(function (script) {
  const form = script.parentElement;
  form.addEventListener("change", ({ target }) => {
    if (!target.dataset.why) return;
    const verdict = target.closest("fieldset").querySelector("output");
    const parts = target.dataset.why.split("`"); // what is between two of them is code
    verdict.replaceChildren(
      ...parts.map((part, i) => {
        if (i % 2 === 0) return part;
        const code = document.createElement("code");
        code.textContent = part;
        return code;
      }),
    );
  });
})
