"""A request in six languages, as code that uses the clients of docs/clients/."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from textwrap import indent
from typing import Any


@dataclass(frozen=True)
class _Language:
    """`signed` and `plain` are the code of a signed request and of a GET.

    `start` to `margin` define how an object is written. `inside` is the indentation of the call in `signed`, `by_name`
    the prefix of the Idempotency-Key.
    """

    key: str
    name: str
    client: str
    run: str
    signed: str
    plain: str
    start: str = "{"
    end: str = "}"
    pair: str = '"{}": '
    quote: str = '"'
    last: str = ",\n"
    margin: str = "    "
    inside: str = ""
    by_name: str = ""

    def literal(self, value: Any) -> str:
        """A value of JSON in this language."""
        if isinstance(value, str):
            return self.quote + value.replace("\\", "\\\\").replace(self.quote, f"\\{self.quote}") + self.quote
        if not isinstance(value, dict):
            return json.dumps(value)
        if not value:
            return self.start + self.end
        rows = ",\n".join(self.pair.format(name) + self.literal(each) for name, each in value.items())
        return f"{self.start}\n{indent(rows, self.margin)}{self.last}{self.end}"


LANGUAGES = (
    _Language(
        "python",
        "Python",
        "merchant.py",
        "python3 sample.py",
        signed="from merchant import call\n\nresponse = call({endpoint}, {fields}{key})\nprint(response)\n",
        plain="import json\nfrom urllib.request import urlopen\n\n"
        "with urlopen({address}) as response:\n    print(json.load(response))\n",
        by_name="idempotency_key=",
    ),
    _Language(
        "php",
        "PHP",
        "merchant.php",
        "php sample.php",
        signed="<?php\nrequire 'merchant.php';\n\n$response = Merchant\\call({endpoint}, {fields}{key});\n"
        'echo json_encode($response), "\\n";\n',
        plain='<?php\necho file_get_contents({address}), "\\n";\n',
        start="[",
        end="]",
        pair="'{}' => ",
        quote="'",
    ),
    _Language(
        "javascript",
        "JavaScript",
        "merchant.mjs",
        "node sample.mjs",
        signed="import {{ call }} from './merchant.mjs';\n\nconst response = await call({endpoint}, {fields}{key});\n"
        "console.log(JSON.stringify(response));\n",
        plain="const response = await fetch({address});\nconsole.log(JSON.stringify(await response.json()));\n",
        pair="{}: ",
        quote="'",
        margin="  ",
    ),
    _Language(
        "java",
        "Java",
        "Merchant.java",
        "javac Merchant.java Sample.java && java Sample",
        signed="import java.util.Map;\n\npublic class Sample {{\n"
        "    public static void main(String[] arguments) throws Exception {{\n"
        "        Map<String, ?> fields = {fields};\n"
        "        System.out.println(Merchant.call({endpoint}, fields{key}));\n    }}\n}}\n",
        plain="import java.net.URI;\nimport java.net.http.*;\n\npublic class Sample {{\n"
        "    public static void main(String[] arguments) throws Exception {{\n"
        "        HttpRequest request = HttpRequest.newBuilder(URI.create({address})).build();\n"
        "        HttpResponse.BodyHandler<String> text = HttpResponse.BodyHandlers.ofString();\n"
        "        System.out.println(HttpClient.newHttpClient().send(request, text).body());\n    }}\n}}\n",
        start="Map.of(",
        end=")",
        pair='"{}", ',
        last="",
        inside=" " * 8,
    ),
    _Language(
        "go",
        "Go",
        "merchant.go",
        "go run merchant.go sample.go",
        signed='package main\n\nimport "log"\n\nfunc init() {{\n\trun = func() {{\n'
        "\t\tresponse, err := call({endpoint}, {fields}{key})\n"
        "\t\tif err != nil {{\n\t\t\tlog.Fatal(err)\n\t\t}}\n\t\tshow(response)\n\t}}\n}}\n",
        plain='package main\n\nimport (\n\t"io"\n\t"log"\n\t"net/http"\n\t"os"\n)\n\nfunc main() {{\n'
        "\tresponse, err := http.Get({address})\n\tif err != nil {{\n\t\tlog.Fatal(err)\n\t}}\n"
        "\tio.Copy(os.Stdout, response.Body)\n}}\n",
        start="object{",
        margin="\t",
        inside="\t\t",
    ),
)
ALONE = {"java": "java Sample.java", "go": "go run sample.go"}  # how a GET runs: there is no client to compile


@dataclass(frozen=True)
class Sample:
    """The code of one request. `client` is the file that it needs, if any. No `text`: the client cannot send it."""

    key: str
    name: str
    client: str
    run: str
    text: str


def signed(endpoint: str, fields: dict[str, Any], idempotency_key: str) -> list[Sample]:
    """A signed request in each language; `idempotency_key` is empty if the endpoint takes none."""
    bash = ""
    if not any(isinstance(each, dict) for each in fields.values()):  # the bash client cannot sign nested fields
        words = [f"call {endpoint} {shlex.quote(idempotency_key)}"]
        words += [shlex.quote(f"{name}={each}") for name, each in fields.items()]
        bash = "source ./merchant.sh\n" + " \\\n  ".join(words) + "\n"
    found = [Sample("bash", "bash", "merchant.sh", "bash sample.sh", bash)]
    for each in LANGUAGES:
        literal = each.literal(fields).replace("\n", f"\n{each.inside}")
        is_given = idempotency_key or each.key in ("java", "go")
        key = f", {each.by_name}{each.literal(idempotency_key)}" if is_given else ""
        text = each.signed.format(endpoint=each.literal(endpoint), fields=literal, key=key)
        found.append(Sample(each.key, each.name, each.client, each.run, text))
    return found


def plain(address: str) -> list[Sample]:
    """A GET in each language, without a signature."""
    others = [
        Sample(each.key, each.name, "", ALONE.get(each.key, each.run), each.plain.format(address=each.literal(address)))
        for each in LANGUAGES
    ]
    return [Sample("bash", "curl", "", "", f"curl -s {shlex.quote(address)}\n"), *others]
