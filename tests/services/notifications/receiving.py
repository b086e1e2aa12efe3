"""Receivers of notifications on this machine: an HTTP endpoint, and an SMTP server with TLS or STARTTLS."""

import base64
import json
import socketserver
import ssl
import threading
from email import policy
from email.parser import BytesParser

from werkzeug import Response

FACTS = {"severity": "soon", "language": "en", "digest_hour": None, "enabled": True}  # of a destination
USER, PASSWORD = "ops@shop.example", "authorization-code"


class Robot:
    """An endpoint that stores what it receives and responds as configured."""

    def __init__(self, server, path="/robot"):
        self.server, self.url = server, server.url_for(path)
        self.got, self.answer, self.status = [], {"errcode": 0, "errmsg": "ok"}, 200
        server.expect_request(path).respond_with_handler(self._take)

    def _take(self, request):
        self.got.append(request)
        request.text = request.get_data(as_text=True)
        request.content = json.loads(request.text)
        return Response(json.dumps(self.answer), self.status, content_type="application/json")


class Mailbox(socketserver.ThreadingTCPServer):
    """An SMTP server: `mails` are the messages that it accepted, `refuses` the replies instead of its own, by verb."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, certificate, *, tls):
        super().__init__(("127.0.0.1", 0), _Session)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.tls, self.mails, self.refuses, self.seen = tls, [], {}, []
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that does not trust the certificate ends the connection."""


class _Session(socketserver.StreamRequestHandler):
    """One connection, as RFC 5321, 3207 and 4954 describe it."""

    def setup(self):
        self.encrypted = self.server.tls
        if self.encrypted:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self):
        self._say("220 mail.example ready")
        while line := self.rfile.readline():
            verb = line.decode().split()[0].upper().rstrip(":")
            self.server.seen.append((verb, self.encrypted))
            if verb in self.server.refuses:
                self._say(self.server.refuses[verb])
            elif verb == "QUIT":
                self._say("221 bye")
                return
            else:
                getattr(self, f"_{verb.lower()}")(line)

    def _say(self, *lines):
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    def _ehlo(self, line):
        offers = "AUTH PLAIN" if self.encrypted else "STARTTLS"
        self._say("250-mail.example", f"250 {offers}")

    def _starttls(self, line):
        self._say("220 go ahead")
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.encrypted = True
        super().setup()

    def _auth(self, line):
        given = base64.b64decode(line.split()[2]).decode().split("\0")[1:]
        self._say("235 ok" if given == [USER, PASSWORD] else "535 5.7.8 authentication failed")

    def _mail(self, line):
        self._say("250 ok")

    _rcpt = _rset = _noop = _mail

    def _data(self, line):
        self._say("354 go on")
        body = b""
        while (line := self.rfile.readline()) != b".\r\n":
            body += line
        self.server.mails.append(BytesParser(policy=policy.default).parsebytes(body))
        self._say("250 accepted")
