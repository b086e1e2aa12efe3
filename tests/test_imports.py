"""Imports point one way: app -> serving -> cli, blueprints -> schemas, services -> models, gateways -> net, runtime."""

import ast
from graphlib import TopologicalSorter

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

# The other packages that each package of services and models may import: the layers, from bottom to top.
LAYERS = {
    "models": ("db", "tables", "queries"),
    "services": (
        *("platform", "security", "ledger", "merchants", "callbacks", "channels"),
        *("orders", "deposits", "refunds", "withdrawals", "kinds", "epay", "statements", "backups", "console"),
        *("operations", "notifications", "sandbox", "jobs"),
    ),
}


def modules(tree):
    """The dotted names that a file imports, including imported members."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide where they point"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


IMPORTED = {file: set(modules(tree)) for file, tree in TREES.items()}


def packages(file, within=""):
    """The top-level packages that a file imports, or those that it imports `within` one (such as `services.`)."""
    return {name.removeprefix(within).split(".")[0] for name in IMPORTED[file] if name.startswith(within)}


def test_imports_point_one_way():
    found = {file: packages(file) & NEVER.get(file.split("/")[0], set()) for file in TREES}
    assert {file: wrong for file, wrong in found.items() if wrong} == {}


def test_the_http_server_serves_any_wsgi_application():
    assert not packages("serving/http_server.py") & {*ABOVE, *FOLDERS}


def test_no_function_imports():
    for file, tree in TREES.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        late = {f.name for f in functions for node in ast.walk(f) if isinstance(node, (ast.Import, ast.ImportFrom))}
        assert late <= {"build"}, file


def test_packages_import_one_way():
    wrong = {}
    for file in TREES:
        top, package, *_ = [*file.split("/"), ""]
        if top in LAYERS and file.count("/") >= 2 and (top, package) != ("models", "migrations"):
            higher = LAYERS[top][LAYERS[top].index(package) + 1 :]
            wrong[file] = packages(file, f"{top}.") & set(higher)
    assert {file: found for file, found in wrong.items() if found} == {}


def of_services(*folders):
    """The packages of services that the files in these folders of it import."""
    files = [file for file in TREES if file.startswith(tuple(f"services/{folder}/" for folder in folders))]
    return set().union(*(packages(file, "services.") for file in files))


def test_the_kinds_of_orders_do_not_know_each_other_and_orders_know_none():
    assert not {"refunds", "withdrawals"} & of_services("deposits")
    assert not {"refunds", "deposits"} & of_services("withdrawals")
    assert "withdrawals" not in of_services("refunds")
    ground = {"ledger", "callbacks", "channels", "merchants", "security", "platform"}
    assert of_services("orders") - {"orders", "errors"} <= ground


def test_demo_mode_starts_the_sandbox_in_four_files():
    """No other production module imports it, except commands and its own pages."""
    sandbox, users = ("services.sandbox", "blueprints.sandbox"), ("services/sandbox/", "blueprints/sandbox/", "cli/")
    files = {file for file, names in IMPORTED.items() if any(name.startswith(sandbox) for name in names)}
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


def test_a_package_describes_its_content():
    packages = [file for file in TREES if file.startswith(tuple(LAYERS)) and file.endswith("/__init__.py")]
    assert [file for file in packages if file.count("/") == 2 and not ast.get_docstring(TREES[file])] == []


def test_no_two_files_import_each_other():
    """Not even through others."""
    dotted = {file.removesuffix(".py").replace("/", "."): names for file, names in IMPORTED.items()}
    graph = {name: names & dotted.keys() for name, names in dotted.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError
