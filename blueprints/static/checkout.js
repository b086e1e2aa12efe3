// The payment page: counts down, polls the order's status and shows the matching panel.
(() => {
  "use strict";

  const EVERY = 2000; // milliseconds between two polls
  const AT_MOST = 30000; // maximum while the connection is lost
  const EVERY_LATER = 15000; // a payment may still arrive, or the order be completed
  const SOON = 120; // seconds left from which a bar shows them
  const LEAVES_AFTER = 3000; // as the page says
  const FINAL = ["completed", "refunded"];

  const page = document.getElementById("checkout");
  const clock = document.getElementById("countdown");
  const byId = (id) => document.getElementById(id);
  const title = document.title;

  let state = page.dataset.state;
  let deadline = performance.now() + Number(page.dataset.secondsLeft) * 1000;
  let announced = false;
  let failures = 0;
  let asking = false;
  let timer = 0;

  // --- display

  function secondsLeft() {
    return Math.max(0, Math.ceil((deadline - performance.now()) / 1000));
  }

  function show() {
    if (state === "pending" && secondsLeft() === 0) state = "expired";
    if (state === page.dataset.state) return;
    const focused = document.activeElement;
    page.dataset.state = state;
    for (const part of document.querySelectorAll("[data-when]")) {
      part.hidden = !part.dataset.when.split(" ").includes(state);
    }
    const heading = page.querySelector(".panel:not([hidden]) h2");
    byId("announcer").textContent = heading.textContent;
    document.title = state === "pending" ? title : `${heading.textContent} · ${title}`;
    if (focused && focused.closest("[hidden]")) heading.focus();
  }

  function tick() {
    const left = secondsLeft();
    const two = (number) => String(number).padStart(2, "0");
    const minutes = Math.floor(left / 60);
    const hours = Math.floor(minutes / 60);
    clock.textContent = (hours ? `${hours}:${two(minutes % 60)}` : two(minutes)) + `:${two(left % 60)}`;
    clock.parentNode.classList.toggle("soon", left <= SOON);
    byId("left").hidden = left > SOON;
    byId("left").value = left;
    show();
    if (state !== "pending" || left > SOON || announced) return;
    announced = true;
    byId("announcer").textContent = page.dataset.soon;
  }

  function inChina(seconds) {
    return new Date((seconds + 8 * 3600) * 1000).toISOString().slice(0, 19).replace("T", " ");
  }

  // --- polling

  async function ask() {
    const giveUp = new AbortController();
    const limit = setTimeout(() => giveUp.abort(), 10000);
    try {
      const answer = await fetch(page.dataset.statusUrl, { cache: "no-store", signal: giveUp.signal });
      const envelope = await answer.json();
      if (envelope.code !== 1) throw new Error(envelope.msg);
      return envelope.data;
    } finally {
      clearTimeout(limit);
    }
  }

  async function poll() {
    clearTimeout(timer);
    if (asking || document.hidden || FINAL.includes(page.dataset.state)) return;
    asking = true;
    try {
      const order = await ask();
      const isStale = "unready" in page.dataset || state === "moved";
      state = order.state === "pending" && order.moved && !("unready" in page.dataset) ? "moved" : order.state;
      deadline = performance.now() + order.seconds_left * 1000;
      if (order.can_return) leave();
      if (order.received_at) byId("received").textContent = inChina(order.received_at);
      failures = 0;
      if (order.ready && isStale) location.reload(); // to show the channel's payment details
    } catch (error) {
      failures += 1;
    }
    asking = false;
    byId("offline").hidden = failures < 2;
    byId("online").hidden = failures >= 2;
    tick();
    const every = ["cancelled", "confirmed"].includes(state) ? EVERY_LATER : EVERY;
    timer = setTimeout(poll, Math.min(every * 2 ** failures, AT_MOST));
  }

  // --- the way back to the merchant: automatic once per order and tab, so that the browser's Back button is no trap

  const back = byId("back");
  let leaving = 0;

  function hasLeft() {
    try {
      return sessionStorage.getItem(back.href) !== null;
    } catch (error) {
      return true; // without storage the payer is never sent away
    }
  }

  function remember() {
    sessionStorage.setItem(back.href, "");
  }

  function goBack() {
    remember();
    location.replace(back.href);
  }

  function leave() {
    if (!back || leaving) return;
    byId("return").hidden = false;
    if (byId("leaving").hidden) return;
    if (hasLeft()) byId("leaving").hidden = true;
    else leaving = setTimeout(goBack, LEAVES_AFTER);
  }

  if (back) {
    byId("stay").addEventListener("click", (event) => {
      event.preventDefault();
      clearTimeout(leaving);
      remember();
      byId("leaving").hidden = true;
      back.focus();
    });
    if (!byId("return").hidden) leave();
  }

  // --- payments that open when the page is viewed

  const EVERY_OPENING = 20000; // milliseconds between two tries, while the channel does not answer

  async function open(form) {
    if (state !== "pending") return;
    try {
      await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
    } catch (error) {
      // No connection: the page retries automatically.
    }
    setTimeout(poll, asking ? 300 : 0); // a poll that began earlier may miss it
    setTimeout(open, EVERY_OPENING, form);
  }

  // --- payer's input

  // For old browsers, and pages without HTTPS. Without permission, the value stays selected.
  function copyByCommand(button) {
    const field = document.createElement("textarea");
    field.value = button.dataset.copy;
    field.className = "visually-hidden";
    button.before(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    button.focus();
    const value = button.parentNode.querySelector(".value");
    if (!isCopied && value) getSelection().selectAllChildren(value);
    return isCopied;
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch (error) {
      if (!copyByCommand(button)) return;
    }
    const words = button.dataset.words || button.textContent;
    button.dataset.words = words;
    button.textContent = button.dataset.copied;
    button.classList.add("done");
    byId("announcer").textContent = button.dataset.copied;
    setTimeout(() => {
      button.textContent = words;
      button.classList.remove("done");
    }, 2000);
  }

  for (const button of page.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }

  // Ignore repeated presses of a button.
  for (const form of page.querySelectorAll("form")) {
    form.addEventListener("submit", (event) => {
      if (form.classList.contains("sent")) event.preventDefault();
      form.classList.add("sent");
    });
  }

  document.addEventListener("visibilitychange", poll);
  window.addEventListener("online", poll);
  window.addEventListener("pageshow", () => {
    for (const form of page.querySelectorAll("form")) form.classList.remove("sent");
    poll();
  });
  setInterval(tick, 1000);
  tick();
  if (byId("open")) open(byId("open"));
})();
