import json
import sys

from merchant import sign, string_to_sign

for endpoint, fields in json.load(sys.stdin):
    sys.stdout.buffer.write(f"{string_to_sign(endpoint, fields)}\0{sign(endpoint, fields)}\0".encode())
