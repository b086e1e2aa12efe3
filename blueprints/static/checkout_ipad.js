// An iPad's browser calls itself that of a Mac. Only a Mac can show a code to a phone: an iPad needs another page.
(() => {
  "use strict";

  if (navigator.maxTouchPoints < 2) return;
  document.cookie = `touch=1; path=${location.pathname.replace(/\/[^/]*$/, "")}; SameSite=Lax`;
  if (!document.cookie.includes("touch=1")) return; // without cookies it would reload forever
  const opens = document.getElementById("open");
  if (opens) opens.remove(); // the payment is opened by the next page
  location.reload();
})();
