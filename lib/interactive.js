((script, changes) => {
const figure = script.closest(".slider-figure"),
  parts = figure.querySelectorAll("[data-part]"),
  inputs = [...figure.querySelectorAll("input,select")];
function show() {
  const at = inputs.map(i => +(i.type == "checkbox" ? i.checked : i.value));
  for (const [part, name, strides, values] of changes) {
    const value = values[strides.reduce((sum, stride, k) => sum + stride * at[k], 0)];
    if (name) parts[part].setAttribute(name, value);
    else if (parts[part].textContent != value) parts[part].textContent = value;
  }
}
for (const input of inputs) { input.disabled = false; input.addEventListener("input", show); }
figure.querySelector(".note").hidden = true;
show();
})
