// Takes the payer on to the channel's own page.
document.getElementById("go").submit();
