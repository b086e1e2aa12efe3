// Payment inside WeChat: asks the app to pay, by the object that it adds to pages.
(() => {
  "use strict";

  const button = document.getElementById("wechat-pay");
  const message = document.getElementById("wechat-message");

  function pay() {
    message.textContent = "";
    window.WeixinJSBridge.invoke("getBrandWCPayRequest", JSON.parse(button.dataset.bridge), (result) => {
      const [outcome] = result.err_msg.split(":").slice(1);
      message.textContent = message.dataset[outcome] || message.dataset.fail;
    });
  }

  button.addEventListener("click", () => {
    if (window.WeixinJSBridge) {
      pay();
      return;
    }
    message.textContent = message.dataset.fail; // until WeChat adds the object
    document.addEventListener("WeixinJSBridgeReady", pay, { once: true });
  });
})();
