"""Complete examples, built from the examples of a schema's fields."""

from __future__ import annotations

from typing import Any


def example_of(shape: dict[str, Any], schemas: dict[str, Any], shown: tuple[str, ...] | None = None) -> Any:
    """Build an example of a schema: all fields, or the required ones and those in `shown`."""
    if "$ref" in shape:
        return example_of(schemas[shape["$ref"].rsplit("/", 1)[-1]], schemas, shown)
    if "const" in shape or "examples" in shape:
        return shape.get("const") if "const" in shape else shape["examples"][0]
    if "properties" in shape:
        wanted = shape["properties"] if shown is None else {*shape.get("required", ()), *shown}
        return {name: example_of(each, schemas) for name, each in shape["properties"].items() if name in wanted}
    return [example_of(shape["items"], schemas)]
