// Adds copy buttons to code and keeps one language in all samples. The pages also work without this script.
(() => {
  "use strict";

  const { copy, copied } = document.currentScript.dataset;
  const KEY = "samples";

  for (const code of document.querySelectorAll(".reference pre")) {
    const box = document.createElement("div");
    const button = document.createElement("button");
    box.className = "copyable";
    button.className = "copy";
    button.type = "button";
    button.textContent = copy;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent.trimEnd());
      button.textContent = copied;
      setTimeout(() => { button.textContent = copy; }, 2000);
    });
    code.replaceWith(box);
    box.append(code, button);
  }

  const pages = document.querySelector(".wide");
  const shown = pages?.querySelector("[aria-current]");
  if (shown) pages.scrollTop = shown.getBoundingClientRect().top - pages.getBoundingClientRect().top - 100;

  const choose = (language) => {
    for (const input of document.querySelectorAll(".tabs > input")) input.checked = input.value === language;
  };

  document.addEventListener("change", (event) => {
    if (!event.target.matches(".tabs > input")) return;
    const before = event.target.getBoundingClientRect().top;
    choose(event.target.value);
    scrollBy(0, event.target.getBoundingClientRect().top - before); // samples above may have another height now
    sessionStorage.setItem(KEY, event.target.value);
  });

  const kept = sessionStorage.getItem(KEY);
  if (document.querySelector(`.tabs > input[value="${CSS.escape(kept ?? "")}"]`)) choose(kept);
})();
