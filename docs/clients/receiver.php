<?php
// Receive callbacks and returning payers. Put merchant.php into the same folder: php -S 127.0.0.1:9000 receiver.php
declare(strict_types=1);

use function Merchant\{verified, verified_return};

require __DIR__ . '/merchant.php';

if ($_SERVER['REQUEST_METHOD'] === 'GET') { // a payer returns: show the order, and credit it on the callback
    $good = verified_return($_GET);
    if ($good) error_log("return {$_GET['order_no']} {$_GET['status']}");
    http_response_code($good ? 200 : 401);
    exit;
}
$headers = array_change_key_case(getallheaders());
$body = file_get_contents('php://input');
if (!verified($headers, $body)) {
    http_response_code(401);
    exit;
}
// PHP keeps nothing between requests. In a shop, store $headers['webhook-id'] in a unique column,
// and do nothing if it already exists.
$event = json_decode($body, true, 16, JSON_THROW_ON_ERROR);
error_log("{$event['type']} {$event['data']['order_no']}");
http_response_code(204);
