<?php
// Receive callbacks, with merchant.php beside it: php -S 127.0.0.1:9000 receiver.php
declare(strict_types=1);

use function Merchant\verified;

require __DIR__ . '/merchant.php';

$headers = array_change_key_case(getallheaders());
$body = file_get_contents('php://input');
if (!verified($headers, $body)) {
    http_response_code(401);
    exit;
}
// PHP remembers nothing from one request to the next: in your shop, a unique column tells whether
// $headers['webhook-id'] came before; then there is nothing to do.
$event = json_decode($body, true, 16, JSON_THROW_ON_ERROR);
error_log("{$event['type']} {$event['data']['order_no']}");
http_response_code(204);
