(function (script) {
  const form = script.parentElement;
  form.addEventListener("change", ({ target }) => {
    if (!target.dataset.why) return;
    target.closest("fieldset").querySelector("output").innerHTML = target.dataset.why;
  });
})
