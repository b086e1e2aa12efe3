// Keeps parts of a page up to date: elements with an id and `data-live` are fetched again every `data-poll` seconds.
(() => {
  "use strict";

  if (!("poll" in document.body.dataset)) return;
  const every = () => Number(document.body.dataset.poll) * 1000;
  const MOST_OF_THE_TIME = 20; // a page that takes a second to load is fetched every twenty seconds
  let timer = 0;
  let latest = Date.now();

  // Parts inside of parts are replaced together with the outer one.
  const parts = (root) => [...root.querySelectorAll("[data-live][id]")].filter((each) => !each.parentElement.closest("[data-live]"));
  const text = (part) => part.outerHTML.replace(/(name="csrf_token" value=")[^"]*/g, "$1");
  const shown = new Map(parts(document).map((part) => [part.id, text(part)]));

  // Whether the reader is about to use the part: to replace it would undo that.
  const isInUse = (part) => {
    const selection = getSelection();
    const active = document.activeElement;
    return part.querySelector(":popover-open, input[type=checkbox]:checked")
      || (part.contains(active) && active.matches("input:not([type=checkbox]), select, textarea"))
      || (selection && !selection.isCollapsed && selection.containsNode(part, true));
  };

  const focused = (part) => {
    const active = document.activeElement;
    if (!part.contains(active)) return null;
    for (const name of ["id", "data-href", "href", "name"]) {
      if (active.hasAttribute(name)) return `[${name}="${CSS.escape(active.getAttribute(name))}"]`;
    }
    return null;
  };

  const replace = (part, fresh) => {
    const focus = focused(part);
    const tab = document.activeElement?.getAttribute("tabindex");
    const opened = [...part.querySelectorAll("details")];
    const next = document.importNode(fresh, true);
    const details = [...next.querySelectorAll("details")];
    if (details.length === opened.length) details.forEach((each, index) => { each.open = opened[index].open; });
    const left = (part.querySelector(".table") || part).scrollLeft;
    part.replaceWith(next);
    (next.querySelector(".table") || next).scrollLeft = left;
    const again = focus && (next.matches(focus) ? next : next.querySelector(focus));
    if (again) {
      if (tab) again.setAttribute("tabindex", tab);
      again.focus({ preventScroll: true });
    }
    document.dispatchEvent(new Event("renewed"));
  };

  const say = (name) => {
    for (const each of document.querySelectorAll("[data-connection]")) each.hidden = each.dataset.connection !== name;
  };

  const renew = async () => {
    const response = await fetch(location.href, { headers: { "X-Live": "1" } });
    if (response.redirected) return "ended";
    if (response.status >= 500) return "lost";
    if (!response.ok) return "";
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    document.title = fresh.title;
    for (const part of parts(document)) {
      const other = fresh.getElementById(part.id);
      if (!other || isInUse(part) || text(other) === shown.get(part.id)) continue;
      shown.set(part.id, text(other));
      replace(part, other);
    }
    return "";
  };

  const later = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(turn, milliseconds);
  };

  const turn = async () => {
    clearTimeout(timer);
    if (document.hidden) return; // `visibilitychange` continues
    const begin = Date.now();
    const found = await renew().catch(() => "lost");
    say(found);
    latest = Date.now();
    if (found !== "ended") later(Math.max(every(), (latest - begin) * MOST_OF_THE_TIME));
  };

  document.addEventListener("submit", (event) => {
    if ("download" in event.target.dataset) later(1000); // what the page tells about the file has changed by then
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else later(Math.max(0, latest + every() - Date.now()));
  });
  later(every());
})();
