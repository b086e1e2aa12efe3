"""Imports point one way: app, web -> cli, blueprints -> schemas, services -> models, gateways, regions_data."""

import ast

import pytest

from tests.support import ROOT

FOLDERS = ("cli", "server", "blueprints", "schemas", "services", "models", "gateways", "regions_data")
ABOVE = {
    "app",
    "web",
    "cli",
    "server",
    "blueprints",
    "flask",
    "flask_admin",
    "flask_babel",
    "flask_login",
    "flask_wtf",
    "click",
}  # what knows of requests or of a terminal
NEVER = {
    "cli": {"app", "web", "blueprints"},
    "server": (ABOVE | set(FOLDERS) | {"settings"}) - {"server"},
    "blueprints": {"app", "web", "cli", "server"},
    "web": {"app"},
    "schemas": ABOVE | {"services"},
    "services": ABOVE,
    "models": ABOVE | {"services", "schemas", "gateways"},
    "gateways": ABOVE | {"services", "schemas", "models"},
    "regions_data": ABOVE | {"services", "schemas", "models", "gateways"},
    "settings": ABOVE | set(FOLDERS),
    "business_clock": ABOVE | set(FOLDERS) | {"settings"},
}
FILES = [*ROOT.glob("*.py"), *(file for folder in FOLDERS for file in ROOT.glob(f"{folder}/**/*.py"))]
TREES = {str(file.relative_to(ROOT)): ast.parse(file.read_text("utf-8")) for file in FILES}
IMPORTS = (ast.Import, ast.ImportFrom)


def names(node):
    """The top-level packages that an import names."""
    return {alias.name.split(".")[0] for alias in node.names} if isinstance(node, ast.Import) else {_from(node)}


def _from(node):
    assert not node.level, "relative imports hide where they point"
    return node.module.split(".")[0]


@pytest.mark.parametrize("file", TREES)
def test_imports_point_one_way(file):
    imported = set().union(*(names(node) for node in ast.walk(TREES[file]) if isinstance(node, IMPORTS)))
    assert not imported & NEVER.get(file.split("/")[0].removesuffix(".py"), set())


@pytest.mark.parametrize("file", TREES)
def test_no_function_imports(file):
    functions = [node for node in ast.walk(TREES[file]) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    late = {f.name for f in functions for node in ast.walk(f) if isinstance(node, IMPORTS)}
    assert late <= {"create_app"}
