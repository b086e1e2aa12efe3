<?php
// Client of Tillbook, to copy. Needs PHP 8.0 or newer with allow_url_fopen, and openssl for https.
declare(strict_types=1);

namespace Merchant;

define('Merchant\\URL', getenv('MERCHANT_URL') ?: 'http://127.0.0.1:8000'); // with the API prefix, if there is one
define('Merchant\\API_KEY', getenv('MERCHANT_KEY') ?: 'demo');
define('Merchant\\SECRET', getenv('MERCHANT_SECRET') ?: 'demo-secret');
define('Merchant\\CALLBACK_SECRET', getenv('MERCHANT_CALLBACK_SECRET') ?: ''); // if empty, no callback is accepted

function leaves(mixed $value, string $path = ''): array
{
    if ($value === null || $value === '') return [];
    if (!is_array($value)) return [$path => is_string($value) ? $value : json_encode($value)];
    $leaves = [];
    foreach ($value as $name => $item) $leaves += leaves($item, $path === '' ? (string) $name : "$path.$name");
    return $leaves;
}

function string_to_sign(string $endpoint, array $fields): string
{
    $leaves = leaves($fields);
    ksort($leaves, SORT_STRING);
    foreach ($leaves as $path => $value) $endpoint .= "\n$path=$value";
    return $endpoint;
}

function sign(string $endpoint, array $fields): string
{
    return hash_hmac('sha256', string_to_sign($endpoint, $fields), SECRET);
}

/** Return the response, also if it is a refusal. An exception means no response: send the same request again with the same key. */
function call(string $endpoint, array $fields, string $idempotencyKey = ''): array
{
    $body = ['api_key' => API_KEY, 'timestamp' => time(), 'nonce' => bin2hex(random_bytes(16))] + $fields;
    $body['signature'] = sign($endpoint, $body);
    $headers = "Content-Type: application/json\r\n" . ($idempotencyKey === '' ? '' : "Idempotency-Key: $idempotencyKey\r\n");
    $http = ['method' => 'POST', 'header' => $headers, 'content' => json_encode($body, JSON_THROW_ON_ERROR),
        'timeout' => 30, 'ignore_errors' => true, 'follow_location' => 0];
    $answer = @file_get_contents(URL . "/merchant/$endpoint", false, stream_context_create(['http' => $http]));
    if ($answer === false) throw new \RuntimeException(error_get_last()['message'] ?? 'no answer');
    return json_decode($answer, true, 16, JSON_THROW_ON_ERROR);
}

/** Return whether a callback is genuine: `verified(getallheaders(), file_get_contents('php://input'))` */
function verified(array $headers, string $body): bool
{
    $headers = array_change_key_case($headers);
    $timestamp = $headers['webhook-timestamp'] ?? '';
    $key = base64_decode(preg_replace('/^whsec_/', '', CALLBACK_SECRET));
    if ($key === '' || !preg_match('/^[0-9]{1,12}$/D', $timestamp) || abs(time() - (int) $timestamp) > 300) return false;
    $signed = ($headers['webhook-id'] ?? '') . ".$timestamp.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
        if (hash_equals($expected, $given)) return true;
    }
    return false;
}

/** Return whether the fields of the address to which a payer returns are genuine: `verified_return($_GET)`. Credit on the callback only. */
function verified_return(array $fields): bool
{
    $fields = array_filter($fields, 'is_string');
    $headers = ['webhook-id' => $fields['order_no'] ?? '', 'webhook-timestamp' => $fields['timestamp'] ?? '',
        'webhook-signature' => $fields['signature'] ?? ''];
    return verified($headers, ($fields['status'] ?? '') . '.' . ($fields['merchant_order_no'] ?? ''));
}

if (PHP_SAPI === 'cli' && realpath($argv[0]) === __FILE__) {
    $number = 'A-' . hrtime(true) . random_int(100, 999); // your own number of the order
    $order = ['order_type' => 1, 'cny_amount' => '100.00', 'paychannel_id' => 2, 'paychannel_paymethod' => 'wxpay'];
    $created = call('createOrder', $order + ['merchant_order_no' => $number], $number);
    echo json_encode($created, JSON_UNESCAPED_SLASHES), "\n";
    if ($created['code'] === 1) {
        $found = call('orderQueryDetail', ['order_no' => $created['data']['order_no']]);
        echo json_encode($found, JSON_UNESCAPED_SLASHES), "\n";
    }
}
