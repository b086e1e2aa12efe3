// Reloads the list of callbacks every few seconds and keeps opened ones open.
(() => {
  "use strict";

  const EVERY = 3000;
  let seen = document.getElementById("items").innerHTML;

  async function refresh() {
    let lost = false;
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store" });
        if (!answer.ok) throw new Error(answer.status);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("items");
        if (fresh.innerHTML !== seen) swap(fresh);
      } catch (error) {
        lost = true;
      }
      document.getElementById("offline").hidden = !lost;
      document.getElementById("online").hidden = lost;
    }
    setTimeout(refresh, EVERY);
  }

  function swap(fresh) {
    const list = document.getElementById("items");
    const open = new Map([...list.querySelectorAll("details")].map((one) => [one.dataset.key, one.open]));
    seen = fresh.innerHTML;
    for (const one of fresh.querySelectorAll("details")) {
      if (open.has(one.dataset.key)) one.open = open.get(one.dataset.key);
    }
    list.replaceChildren(...document.importNode(fresh, true).childNodes);
  }

  setTimeout(refresh, EVERY);
})();
