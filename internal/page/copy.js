(() => {
  "use strict";
  // Buttons that copy are shown where they can.
  if (navigator.clipboard) document.documentElement.classList.add("copies");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = text; }, 1500);
  });
})();
