"""Imports point one way: app -> serving -> cli, blueprints -> schemas, services -> models, gateways -> net, runtime."""

import ast
from graphlib import TopologicalSorter

import pytest

from tests.support import ROOT

FOLDERS = (
    *("serving", "cli", "blueprints", "schemas", "services"),
    *("models", "gateways", "net", "regions_data", "runtime"),
)
# Modules that know requests or a terminal.
ABOVE = {"app", "serving", "cli", "blueprints", "flask", "flask_babel", "flask_wtf", "click"}
BELOW_SERVICES = ABOVE | {"services", "schemas"}
NEVER = {
    "serving": {"app"},
    "cli": {"app", "serving", "blueprints"},
    "blueprints": {"app", "serving", "cli"},
    "schemas": ABOVE | {"services"},
    "services": ABOVE,
    "models": BELOW_SERVICES | {"gateways", "net"},
    "gateways": BELOW_SERVICES | {"models"},
    "net": set(FOLDERS) - {"net", "runtime"} | ABOVE,
    "regions_data": BELOW_SERVICES | {"models", "gateways", "net"},
    "runtime": set(FOLDERS) - {"runtime"} | ABOVE,
}
FILES = [*ROOT.glob("*.py"), *(file for folder in FOLDERS for file in ROOT.glob(f"{folder}/**/*.py"))]
TREES = {str(file.relative_to(ROOT)): ast.parse(file.read_text("utf-8")) for file in FILES}
IMPORTS = (ast.Import, ast.ImportFrom)

# The other packages that each package of services and models may import: the layers, from bottom to top.
LAYERS = {
    "models": ("db", "tables", "queries"),
    "services": (
        *("platform", "security", "ledger", "merchants", "callbacks", "channels"),
        *("orders", "deposits", "withdrawals", "kinds", "epay", "statements", "backups", "console"),
        *("operations", "notifications", "sandbox", "jobs"),
    ),
}


def names(node):
    """The top-level packages that an import names."""
    return {alias.name.split(".")[0] for alias in node.names} if isinstance(node, ast.Import) else {_from(node)}


def _from(node):
    assert not node.level, "relative imports hide where they point"
    return node.module.split(".")[0]


@pytest.mark.parametrize("file", TREES)
def test_imports_point_one_way(file):
    imported = set().union(*(names(node) for node in ast.walk(TREES[file]) if isinstance(node, IMPORTS)))
    assert not imported & NEVER.get(file.split("/")[0], set())


def test_the_http_server_serves_any_wsgi_application():
    imported = set().union(
        *(names(node) for node in ast.walk(TREES["serving/http_server.py"]) if isinstance(node, IMPORTS))
    )
    assert not imported & {*ABOVE, *FOLDERS}


@pytest.mark.parametrize("file", TREES)
def test_no_function_imports(file):
    functions = [node for node in ast.walk(TREES[file]) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    late = {f.name for f in functions for node in ast.walk(f) if isinstance(node, IMPORTS)}
    assert late <= {"build"}


def modules(tree):
    """The dotted names that a file imports, including imported members."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", [file for file in TREES if file.count("/") >= 2 and file.split("/")[0] in LAYERS])
def test_packages_import_one_way(file):
    top, package = file.split("/")[:2]
    if package not in LAYERS[top]:
        assert (top, package) == ("models", "migrations")
        return
    higher = LAYERS[top][LAYERS[top].index(package) + 1 :]
    imported = {name.split(".")[1] for name in modules(TREES[file]) if name.startswith(f"{top}.")}
    assert not imported & set(higher)


def test_deposits_and_withdrawals_do_not_know_each_other():
    kinds = ("deposits", "withdrawals")
    for kind, other in (kinds, kinds[::-1]):
        files = [file for file in TREES if file.startswith(f"services/{kind}/")]
        assert not [name for file in files for name in modules(TREES[file]) if name.startswith(f"services.{other}")]


def test_orders_import_only_what_they_build_on():
    files = [file for file in TREES if file.startswith("services/orders/")]
    imported = {name.split(".")[1] for file in files for name in modules(TREES[file]) if name.startswith("services.")}
    assert imported - {"orders", "errors"} <= {"ledger", "callbacks", "channels", "merchants", "security", "platform"}


def test_demo_mode_starts_the_sandbox_in_three_files():
    """No other production module imports it, except commands and its own pages."""
    sandbox, users = ("services.sandbox", "blueprints.sandbox"), ("services/sandbox/", "blueprints/sandbox/", "cli/")
    files = [file for file, tree in TREES.items() if any(name.startswith(sandbox) for name in modules(tree))]
    assert {file for file in files if not file.startswith(users)} == {
        "app.py", "serving/application.py", "serving/serve.py", "services/jobs/job_table.py",
    }  # fmt: skip


def test_one_module_writes_what_spreadsheets_open():
    """It makes every cell safe. Others would forget it."""
    writers = {"writer", "DictWriter", "Workbook"}
    used = {
        file for file, tree in TREES.items() for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in writers and ast.unparse(node.value) in ("csv", "openpyxl")
    }  # fmt: skip
    assert used == {"services/platform/safe_text.py"}


PACKAGES = [
    file for file in TREES if file.endswith("/__init__.py") and file.count("/") == 2 and file.split("/")[0] in LAYERS
]


@pytest.mark.parametrize("file", PACKAGES)
def test_a_package_describes_its_content(file):
    assert ast.get_docstring(TREES[file])


def test_no_two_files_import_each_other():
    """Not even through others."""
    dotted = {file.removesuffix(".py").replace("/", "."): tree for file, tree in TREES.items()}
    graph = {name: {each for each in modules(tree) if each in dotted} for name, tree in dotted.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError
