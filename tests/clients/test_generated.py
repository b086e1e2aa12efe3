"""Code generators read the whole OpenAPI document, and the clients that they make place a signed order."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.clients.conftest import CLEAN
from tests.support import ROOT

pytestmark = pytest.mark.sqlite  # once: the database makes no difference to what is generated

GENERATED = Path(__file__).parent / "generated"
NPM = GENERATED / "node_modules"
PROGRAMS = Path(sys.executable).parent
MODELS = ["--output-model-type", "pydantic_v2.BaseModel", "--openapi-scopes", "schemas", "paths"]
GENERATOR = "openapi-generator-cli"
QUIET = ["--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"]
# What the generated Java needs: Jackson is in the generator's own jar, the others are packages of Debian.
JARS = [Path("/usr/share/java") / name for name in ("httpmime.jar", "geronimo-annotation-1.3-spec.jar")]
# The library whose dependencies Debian has, and without the wrapper of nullable values, which it lacks.
JAVA = ["--library", "native", "--additional-properties", "openApiNullable=false"]


def run(folder, *command, **settings):
    """Run a command, which must succeed; return its output."""
    environ = CLEAN | {"NO_PROXY": "*"} | settings
    done = subprocess.run([*map(str, command)], cwd=folder, env=environ, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def node(slow):
    """`node(folder, program, *arguments)` runs one of the npm tools."""
    if not shutil.which("node") or not NPM.exists():
        pytest.skip("the npm tools are not installed: install Node.js 20 with npm, then make setup")
    return lambda folder, program, *arguments, **settings: run(folder, "node", NPM / program, *arguments, **settings)


@pytest.fixture(scope="session")
def document(live, tmp_path_factory):
    """A folder with the document as the running service serves it, and what the clients need to sign."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(requests.get(f"{live.url}/openapi.json", timeout=20).content)
    for source in (*GENERATED.glob("*.*"), *(ROOT / "docs" / "clients").glob("[mM]erchant.*")):
        shutil.copy(source, folder)
    return folder


@pytest.fixture(scope="session")
def described(document):
    """The document itself."""
    return json.loads((document / "openapi.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def names(described):
    """The names of all operations."""
    return {each["operationId"] for path in described["paths"].values() for each in path.values()}


@pytest.fixture(scope="session")
def generate(document):
    """`generate(language)` runs openapi-generator; returns the folder of the client."""
    if not shutil.which("java"):
        pytest.skip("openapi-generator needs Java")

    def generated(language, *options):
        program = PROGRAMS / GENERATOR
        run(document, program, "generate", "-i", "openapi.json", "-g", language, "-o", language, *QUIET, *options)
        return document / language

    return generated


# The client's own checks allow this amount: it is above the channel's limit.
REFUSED = "This channel accepts 0.01 to 1000000.00 yuan."


def is_right(printed, live):
    """Compare what a client read with what the service says of the order now."""
    read = json.loads(printed)
    order = live.api.detail(order_no=read["order_no"]).data
    assert read["pay_url"].startswith(f"{live.url}/addons/paychannel/pay/index?order_no={read['order_no']}")
    assert (order["cny_amount"], read["status"]) == ("12.50", order["status"])
    assert read["merchant_actual_amount"] == order["merchant_actual_amount"]
    assert int(read["created_at"]) == order["createtime"]
    assert read["refused"] == {"code": 42200, "data": {"cny_amount": [REFUSED]}}
    return read


def test_openapi_python_client_makes_a_module_of_each_operation_that_places_signed_orders(document, names, live):
    (document / "generator.yaml").write_text("post_hooks: []\n")
    # It leaves out what it can't read, and then warns.
    options = ["--meta", "none", "--output-path", "orders_api", "--config", "generator.yaml", "--fail-on-warning"]
    run(document, PROGRAMS / "openapi-python-client", "generate", "--path", "openapi.json", *options)
    modules = {file.stem for file in (document / "orders_api").glob("api/*/*.py")} - {"__init__"}
    assert modules == {re.sub("(?=[A-Z])", "_", name).lower() for name in names}
    read = is_right(run(document, sys.executable, "order.py", MERCHANT_URL=live.url), live)
    assert read["withdrawal"] == "张三"
    assert live.api.detail(order_no=read["first"]).data["order_type"] == 2


def test_datamodel_code_generator_makes_a_model_of_each_schema_that_places_a_signed_order(document, described, live):
    file = document / "orders_models.py"
    read = ["--input", "openapi.json", "--input-file-type", "openapi"]
    run(document, PROGRAMS / "datamodel-codegen", *read, "--output", file, "--formatters", "builtin", *MODELS)
    classes = {*re.findall(r"^class (\w+)\(", file.read_text("utf-8"), re.MULTILINE)}
    assert {*described["components"]["schemas"]} <= classes
    is_right(run(document, sys.executable, "order_models.py", MERCHANT_URL=live.url), live)


def test_openapi_typescript_makes_a_type_of_each_operation_that_places_a_signed_order(node, document, names, live):
    node(document, "openapi-typescript/bin/cli.js", "openapi.json", "--output", "api.ts")
    operations = (document / "api.ts").read_text("utf-8").partition("export interface operations {")[2]
    found = {*re.findall(r"^    (\w+): \{$", operations, re.MULTILINE)}
    assert {name for name in found if not name.startswith("callback_")} == names
    (document / "node_modules").symlink_to(NPM)
    node(document, "typescript/bin/tsc", "--project", ".")
    read = is_right(run(document, "node", "order.js", MERCHANT_URL=live.url), live)
    assert read["first"] == read["order_no"]


def test_the_client_of_openapi_generator_for_python_places_signed_orders(generate, document, live):
    (generate("python") / "openapi_client").rename(document / "openapi_client")
    read = is_right(run(document, sys.executable, "order_client.py", MERCHANT_URL=live.url), live)
    withdrawal = live.api.detail(order_no=read["first"]).data
    assert (read["withdrawal"], withdrawal["merchant_order_no"]) == ("张三", "W-7")


def test_the_client_of_openapi_generator_for_java_places_a_signed_order(generate, document, live):
    if not shutil.which("javac") or not all(jar.exists() for jar in JARS):
        pytest.skip("no compiler, or packages are missing: libhttpmime-java, libgeronimo-annotation-1.3-spec-java")
    sources = [*generate("java", *JAVA).glob("src/main/java/**/*.java"), "Order.java", "Merchant.java"]
    generator = run(document, sys.executable, "-c", "import openapi_generator_cli as it; print(it.__path__[0])").strip()
    jars = ":".join(map(str, [Path(generator) / "openapi-generator.jar", *JARS]))
    run(document, "javac", "-nowarn", "-encoding", "utf-8", "-cp", jars, "-d", "classes", *sources)
    is_right(run(document, "java", "-cp", f"classes:{jars}", "Order", MERCHANT_URL=live.url), live)


def test_the_client_of_openapi_generator_for_typescript_compiles(generate, node, document):
    strict = ["--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"]
    node(generate("typescript-fetch"), "typescript/bin/tsc", "--noEmit", *strict, "index.ts")


def test_the_recommended_rules_of_redocly_find_nothing(node, document):
    if int(run(document, "node", "--version").strip().lstrip("v").partition(".")[0]) < 20:
        pytest.skip("Redocly's linter needs Node.js 20")
    off = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    options = ["--extends", "recommended", "--format", "json"]
    printed = node(document, "@redocly/cli/bin/cli.js", "lint", "openapi.json", *options, **off)
    assert json.loads(printed)["problems"] == []
