// Tells the server the reader's time zone and prevents sending a form twice. The console also works without it.
(() => {
  "use strict";

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.documentElement.dataset.zone;
  if (zone && zone !== known && !document.cookie.includes(`console_zone=${zone}`)) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `console_zone=${zone}; path=/console; max-age=31536000; samesite=lax${secure}`;
    if (document.querySelector("time") || document.querySelector("input[type=datetime-local]")) location.reload();
  }

  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post" || "download" in event.target.dataset || event.target.target) return; // the page stays open
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });

  // A page that starts a download: it stays open while the browser saves the file.
  document.addEventListener("DOMContentLoaded", () => document.querySelector("form[data-start]")?.requestSubmit());

  // The result of a form with `data-inline` is shown in the element with this id. Without a script it opens a new tab.
  document.addEventListener("submit", async (event) => {
    const form = event.target, place = document.getElementById(form.dataset.inline);
    if (!place) return;
    event.preventDefault();
    place.textContent = place.dataset.busy;
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
    const page = new DOMParser().parseFromString(response ? await response.text() : "", "text/html");
    const found = page.getElementById(place.id);
    place.replaceChildren(...(found ? found.childNodes : []));
    if (!found) form.submit();
  });

  // The key that an empty field gets, from the name in another field.
  for (const key of document.querySelectorAll("[data-from]")) {
    const name = document.getElementById(key.dataset.from);
    const words = () => name.value.toLowerCase().match(/[a-z0-9]+/g) || [];
    name.addEventListener("input", () => { key.placeholder = words().join("-").slice(0, 40); });
  }

  // The first wrong field of a form. A suggested value with `data-select` is selected, so that typing replaces it.
  document.querySelector(".wrong :is(input, select, textarea)")?.focus();
  const select = (field) => { if ("select" in field.dataset) field.select(); };
  document.addEventListener("focusin", (event) => select(event.target));
  select(document.activeElement);

  // A click outside a menu or Escape closes it.
  const menus = () => document.querySelectorAll("header.bar details, .filterbox:not(:has(.wrong)), .views details, .others");
  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of menus()) menu.open = false;
  });

  // Hide fields that do not belong to the selected choice.
  for (const field of document.querySelectorAll("[data-when]")) {
    const choice = document.getElementById(field.dataset.when);
    const show = () => { field.hidden = choice.value !== field.dataset.is; };
    choice.addEventListener("change", show);
    show();
  }

  // A click on a row opens its page, unless it is on a control or selects text.
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-href]");
    if (!row || event.target.closest("a, button, input, label, summary, .col-select") || String(getSelection())) return;
    if (event.ctrlKey || event.metaKey) window.open(row.dataset.href, "_blank", "noopener");
    else location.assign(row.dataset.href);
  });

  // The bar of a list's selected rows: their number and total, and all rows of the page at once.
  const boxes = () => [...document.querySelectorAll("input[form=bulk]")];
  const count = () => {
    const bar = document.getElementById("bulk");
    if (!bar) return;
    const told = bar.querySelector("[data-selected]");
    const chosen = boxes().filter((box) => box.checked);
    const fen = chosen.reduce((sum, box) => sum + Number(box.dataset.amount || 0), 0);
    const total = (fen / 100).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    told.value = told.dataset.selected.replace("{count}", chosen.length).replace("{total}", total);
    for (const button of bar.querySelectorAll("button")) button.disabled = !chosen.length;
  };
  document.addEventListener("change", count);
  window.addEventListener("pageshow", count);
  document.addEventListener("click", (event) => {
    const control = event.target.closest("[data-select-all]");
    if (!control) return;
    const on = control.type === "checkbox" ? control.checked : boxes().some((box) => !box.checked);
    if (control.type !== "checkbox") event.preventDefault();
    for (const box of boxes()) box.checked = on;
    count();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    (button.querySelector("span") || button).textContent = button.dataset.copied;
  });

  // What needs a script is hidden without it. It is also run for the parts that console_live.js renews.
  const show = () => {
    for (const control of document.querySelectorAll("[data-select-all]")) control.hidden = false;
    for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard; // undefined without HTTPS
    count();
  };
  document.addEventListener("renewed", show);
  show();

  // The current one of tabs that do not fit.
  for (const tab of document.querySelectorAll(":is(.tabs, .ranges) [aria-current]")) {
    tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;
  }

  for (const button of document.querySelectorAll("[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => print());
  }
})();
