<?php
/* Serves a checkout of the platform through PHP's built-in server. Does the rewrites that a web server would do, and
 * lets the tests move the clock and replace a response. RUN is the folder of this run. */

namespace lib {
    /** Called by the platform's classes in this namespace in place of PHP's own: the tests' clock. */
    function time()
    {
        return \time() + (int) @file_get_contents(getenv('RUN') . '/ahead');
    }
}

namespace {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    $spoiled = (string) @file_get_contents(getenv('RUN') . '/spoiled');
    if ($spoiled !== '' && str_ends_with($path, $spoiled)) {
        ob_start(fn ($answer) => '<html>502 Bad Gateway</html>'); // the request is processed, the response is lost
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
