"""The study's JSON schema, made from the models, for editors: ``python -m pivotbench.study.schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pivotbench.files import write_text
from pivotbench.study.fields import NAME_CHARACTERS, NAME_PATTERN, RESERVED_NAMES
from pivotbench.study.model import Study

SCHEMA_FILE = Path(__file__).parents[3] / "workflow" / "schemas" / "study.schema.json"

_UNRESERVED = f"^(?!({'|'.join(RESERVED_NAMES)})$){NAME_PATTERN}$"
_NAME = {"pattern": f"^{NAME_PATTERN}$", "maxLength": NAME_CHARACTERS}


def study_schema() -> dict[str, Any]:
    """Return the JSON schema of a study file."""
    schema = _tidy(Study.model_json_schema())
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pivotbench study",
        **schema,
    }
    del schema["$defs"]["Model"]["properties"]["name"]["default"]
    model = schema["properties"]["model"]
    text = {"type": "string", "minLength": 1, "description": "Hub id or local path."}
    schema["properties"]["model"] = {
        "description": model["description"],
        "anyOf": [text, {"$ref": model["$ref"]}],
    }
    image = {"type": "string", "minLength": 1, "description": "Image, run by docker."}
    for part in (schema, schema["$defs"]["Version"]):
        container = part["properties"]["container"]
        part["properties"]["container"] = {
            "description": container["description"],
            "anyOf": [image, {"$ref": container["$ref"]}],
        }
    schema["properties"]["versions"]["propertyNames"] = _NAME
    schema["$defs"]["Version"]["oneOf"] = [{"required": [origin]} for origin in ("python", "container")]
    schema["properties"]["env"]["additionalProperties"] = {"type": ["string", "integer"]}
    for section in ("Backends", "Speculative"):
        definition = schema["$defs"][section]
        named = definition.pop("additionalProperties")
        # A pattern beside the fixed keys lets editors complete those and still check any other name.
        definition["patternProperties"] = {_UNRESERVED: named}
        definition["additionalProperties"] = False
    schema["$defs"]["Workload"]["anyOf"] = [{"required": [pace]} for pace in ("concurrency", "rate")]
    schema["$defs"]["Metric"]["oneOf"] = [{"required": [load]} for load in ("concurrency", "goodput")]
    for name in ("Goodput", "Percentiles"):
        limits = [key for key in schema["$defs"][name]["properties"] if key != "over"]
        schema["$defs"][name]["anyOf"] = [{"required": [limit]} for limit in limits]
    schema["$defs"]["Throughput"]["properties"]["workloads"]["propertyNames"] = _NAME
    return schema


def schema_text() -> str:
    """Return the schema as it is committed."""
    return json.dumps(study_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidy(node: Any, *, names: bool = False) -> Any:
    """Return a schema without generated titles, and without null as an alternative (no key may be null).

    ``names`` says that the keys of ``node`` are names from the study rather than words of the schema.
    """
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: value for key, value in node.items() if names or key != "title"}
    if not names and node.get("default", 0) is None:
        del node["default"]
    alternatives = [item for item in node.get("anyOf", []) if item != {"type": "null"}] if not names else []
    if len(alternatives) == 1:
        del node["anyOf"]
        node = {**alternatives[0], **node}
    elif alternatives:
        node["anyOf"] = alternatives
    return {key: _tidy(value, names=key in ("properties", "$defs")) for key, value in node.items()}


def main() -> None:
    """Write the schema to its place in the repository."""
    write_text(SCHEMA_FILE, schema_text())
    print(f"wrote {SCHEMA_FILE}")


if __name__ == "__main__":
    main()
