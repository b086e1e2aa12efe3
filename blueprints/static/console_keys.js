// Keys: / searches, j and k move through the rows of a list, Enter opens one, ? shows the keys.
(() => {
  "use strict";

  const help = document.getElementById("keys");
  if (!help) return;
  for (const button of document.querySelectorAll("[popovertarget=keys]")) button.hidden = false;

  const move = (by) => {
    const rows = [...document.querySelectorAll("tr[data-href], .hits a")];
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement.closest("tr[data-href], .hits a"));
    const row = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (row.matches("tr")) row.tabIndex = -1;
    row.focus();
    row.scrollIntoView({ block: "nearest" });
  };

  const keys = {
    "/": () => document.querySelector(".find input[type=search]").focus(),
    "?": () => help.togglePopover(),
    j: () => move(1),
    k: () => move(-1),
  };

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.key === "Escape" && target.matches(".find input")) target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), select, textarea")) return;
    if (event.key === "Enter" && target.matches("tr[data-href]")) {
      location.assign(target.dataset.href);
      return;
    }
    const open = document.querySelector(":popover-open");
    if (!(event.key in keys) || (open && open !== help)) return;
    event.preventDefault();
    if (open && event.key !== "?") open.hidePopover();
    keys[event.key]();
  });
})();
