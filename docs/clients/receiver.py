"""Receive callbacks and returning payers. Put merchant.py into the same folder: python3 receiver.py 9000"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from merchant import verified, verified_return

seen = set()  # in a shop, use a unique column


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        good = verified(self.headers, body)
        if good and self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            event = json.loads(body)
            print(event["type"], event["data"]["order_no"], flush=True)
        self.send_response(204 if good else 401)
        self.end_headers()

    def do_GET(self):  # a payer returns: show the order, and credit it on the callback
        fields = dict(parse_qsl(urlsplit(self.path).query))
        good = verified_return(fields)
        if good:
            print("return", fields["order_no"], fields["status"], flush=True)
        self.send_response(200 if good else 401)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
