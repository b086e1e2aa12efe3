<?php
/* Serves a checkout of the platform by PHP's own server: the rewrites that its web server would do, and a clock and an
 * answer that the tests can spoil. RUN is the folder of this run. */

namespace lib {
    /** The platform's clock, which goes ahead with that of the tests. */
    function time()
    {
        return \time() + (int) @file_get_contents(getenv('RUN') . '/ahead');
    }
}

namespace {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    $spoiled = (string) @file_get_contents(getenv('RUN') . '/spoiled');
    if ($spoiled !== '' && str_ends_with($path, $spoiled)) {
        ob_start(fn ($answer) => '<html>502 Bad Gateway</html>'); // it did its work, and nobody hears how it went
    }
    foreach (['/api/' => '/api.php', '/pay/' => '/pay.php'] as $start => $script) {
        if (str_starts_with($path, $start)) {
            $_GET['s'] = substr($path, strlen($start));
            $path = $script;
        }
    }
    $file = $_SERVER['DOCUMENT_ROOT'] . $path;
    if (!str_ends_with($file, '.php') || !is_file($file)) {
        return false;
    }
    chdir(dirname($file));
    require $file;
}
