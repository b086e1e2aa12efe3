"""The payment page behind `pay_url`."""
