// Sends the payer to the channel's own page.
document.getElementById("go").submit();
