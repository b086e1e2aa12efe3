<?php
use function Merchant\sign;
use function Merchant\string_to_sign;

require __DIR__ . '/merchant.php';

foreach (json_decode(stream_get_contents(STDIN), true) as [$endpoint, $fields]) {
    echo string_to_sign($endpoint, $fields), "\0", sign($endpoint, $fields), "\0";
}
