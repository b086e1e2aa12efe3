// The console works without this. It tells the server the reader's time zone, and keeps a form from being sent twice.
(() => {
  "use strict";

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.documentElement.dataset.zone;
  if (zone && zone !== known && !document.cookie.includes(`console_zone=${zone}`)) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `console_zone=${zone}; path=/console; max-age=31536000; samesite=lax${secure}`;
    if (document.querySelector("time") || document.querySelector("input[type=datetime-local]")) location.reload();
  }

  // On a desk the filters are always there.
  if (matchMedia("(min-width: 44rem)").matches) {
    for (const box of document.querySelectorAll(".filterbox")) box.open = true;
  }

  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });

  // One open menu at a time, and none once the reader looks elsewhere.
  const menus = [...document.querySelectorAll("header.bar details")];
  document.addEventListener("click", (event) => {
    for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of menus) menu.open = false;
  });

  // A field that belongs to another choice than the one that is made is out of the way.
  for (const field of document.querySelectorAll("[data-when]")) {
    const choice = document.getElementById(field.dataset.when);
    const show = () => { field.hidden = choice.value !== field.dataset.is; };
    choice.addEventListener("change", show);
    show();
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard; // there is none without https
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = button.dataset.copied;
    });
  }
})();
