#!/usr/bin/env bash
# Client of Tillbook for manual tests, with bash, curl and OpenSSL. For flat requests only.
# Do not use it in a shop: other users of the machine can see the secret while openssl runs.
set -euo pipefail
url=${MERCHANT_URL:-http://127.0.0.1:8000} # with the API prefix, if there is one
key=${MERCHANT_KEY:-demo} secret=${MERCHANT_SECRET:-demo-secret}
callback_secret=${MERCHANT_CALLBACK_SECRET:-} # if empty, no callback is accepted

string_to_sign() { # ENDPOINT NAME=VALUE...; `$(...)` removes the last newline, as the rule requires
  printf %s "$(echo "$1" && shift && printf '%s\n' "$@" | LC_ALL=C grep -v '^[^=]*=$' | LC_ALL=C sort -t= -k1,1)"
}

sign() { # ENDPOINT NAME=VALUE...
  string_to_sign "$@" | openssl dgst -sha256 -hmac "$secret" | sed 's/.* //'
}

# ENDPOINT IDEMPOTENCY_KEY NAME=VALUE...: print the response, also of a refusal. The key may be ''. All values are sent as strings.
# Fails if there is no response: send the same request again with the same key.
call() {
  local endpoint=$1 idempotency_key=$2 body='' field value
  shift 2
  set -- "$@" "api_key=$key" "timestamp=$(date +%s)" "nonce=$(openssl rand -hex 16)"
  for field in "$@" "signature=$(sign "$endpoint" "$@")"; do
    value=${field#*=} value=${value//\\/\\\\} value=${value//\"/\\\"}
    body+=",\"${field%%=*}\":\"$value\""
  done
  curl -sS --max-time 30 "$url/merchant/$endpoint" -H 'Content-Type: application/json' \
    ${idempotency_key:+-H "Idempotency-Key: $idempotency_key"} --data-binary @- <<<"{${body#,}}"
}

verified() { # ID TIMESTAMP SIGNATURES: the values of the headers; the raw body is on standard input
  local hex expected given
  hex=$(printf %s "${callback_secret#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
  [[ $hex && $2 =~ ^[0-9]{1,12}$ ]] && (($(date +%s) - 10#$2 <= 300 && 10#$2 - $(date +%s) <= 300)) || return 1
  expected=v1,$({ printf %s "$1.$2." && cat; } | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$hex" -binary | openssl base64 -A)
  for given in $3; do [[ $given == "$expected" ]] && return 0; done
  return 1
}

verified_return() { # ORDER_NO MERCHANT_ORDER_NO STATUS TIMESTAMP SIGNATURES: the decoded fields of the return address
  printf %s "$3.$2" | verified "$1" "$4" "$5"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  number=A-$(date +%s)-$RANDOM # your own order number
  created=$(call createOrder "$number" order_type=1 cny_amount=100.00 paychannel_id=2 paychannel_paymethod=wxpay "merchant_order_no=$number")
  echo "$created"
  order_no=$(sed -n 's/^{"code":1,.*"order_no":"\([0-9]*\)".*/\1/p' <<<"$created")
  if [[ $order_no ]]; then call orderQueryDetail '' "order_no=$order_no"; fi
fi
