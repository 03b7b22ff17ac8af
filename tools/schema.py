"""Write the JSON Schema of a report, from the declarations of its parts.

    python tools/schema.py          # or `make figures`, after a change to a declaration
    python tools/schema.py --check  # exit 1 if it is out of date

The figures of a profile are declared in include/headrace/profile, the parts of a diagnosis and of steps
in python/headrace/results/data.py.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from typing import Any

from written import ROOT, write_or_check

from headrace import _core
from headrace.results import data

VERSION = 1
SCHEMA = ROOT / "docs" / "schema" / f"report-v{VERSION}.json"

Schema = dict[str, Any]

#: A parameter has the type that the loader gives it.
VALUE = {"type": ["integer", "boolean", "string", "number", "null"]}
PLAIN: dict[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
}


def or_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return schema if schema == VALUE else {"anyOf": [schema, {"type": "null"}]}


# --- the profile --------------------------------------------------------------------------------------------


def of_figure(figure: dict[str, Any]) -> Schema:
    kind = figure["type"]
    schema: Schema
    if figure.get("struct"):
        schema = {"$ref": f"#/$defs/{kind}"}
    elif kind == "object":
        schema = {"type": "object", "additionalProperties": {"type": "string"}}
    elif kind == "numbers":
        schema = {"type": "object", "additionalProperties": {"type": "number"}}
    elif kind == "value":
        schema = dict(VALUE)
    else:
        schema = {"type": kind}
    bounds = {"least": "minimum", "most": "maximum"}
    if kind in ("integer", "number"):
        schema |= {word: figure[name] for name, word in bounds.items() if name in figure}
    if figure.get("list"):
        schema = {"type": "array", "items": schema}
    if figure.get("null"):
        schema = or_null(schema)
    unit = f" Unit: {figure['unit']}." if figure.get("unit") else ""
    return {**schema, "description": figure["says"] + unit}


def of_struct(struct: dict[str, Any]) -> Schema:
    figures = {figure["name"]: of_figure(figure) for figure in struct["figures"]}
    return {"type": "object", "description": struct["says"], "properties": figures}


# --- diagnosis and steps ------------------------------------------------------------------------------------


def of_hint(hint: Any) -> Schema:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        kinds = [kind for kind in inside if kind is not type(None)]
        schema = dict(VALUE) if len(kinds) > 1 else of_hint(kinds[0])
        return or_null(schema) if type(None) in inside else schema
    if origin is list:
        return {"type": "array", "items": of_hint(inside[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": or_null(of_hint(inside[1]))}
    if dataclasses.is_dataclass(hint):
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return dict(PLAIN[hint])


def of_class(part: type) -> Schema:
    hints = typing.get_type_hints(part)
    # The document says null where there is nothing to say.
    properties = {
        one.name.rstrip("_"): or_null(of_hint(hints[one.name]))
        if hints[one.name] in (str, float)
        else of_hint(hints[one.name])
        for one in dataclasses.fields(part)
    }
    return {"type": "object", "description": (part.__doc__ or "").split("\n")[0], "properties": properties}


CLASSES = [
    data.Diagnosis,
    data.Evidence,
    data.QueueRule,
    data.Advice,
    data.Risk,
    data.VerdictWindow,
    data.Steps,
    data.StepTime,
]


def schema() -> Schema:
    structs = json.loads(_core.profile_schema())
    parts = {struct["name"]: of_struct(struct) for struct in reversed(structs)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"report-v{VERSION}.json",
        "title": "A report of Headrace",
        "description": "`headrace report --format json` prints it. docs/reference.md says how it may change.",
        "type": "object",
        "required": ["version", "loader", "rank", "profile", "diagnosis", "steps"],
        "properties": {
            "version": {"const": VERSION},
            "loader": {"type": "string"},
            "rank": {"type": "integer"},
            "profile": {"$ref": "#/$defs/Profile"},
            "diagnosis": {"$ref": "#/$defs/Diagnosis"},
            "steps": {"$ref": "#/$defs/Steps"},
            "findings": {"type": "array", "items": {"$ref": "#/$defs/Finding"}},
            "budget": {"type": "array", "items": {"$ref": "#/$defs/BudgetPart"}},
        },
        "$defs": {**parts, **{part.__name__: of_class(part) for part in CLASSES}},
    }


if __name__ == "__main__":
    text = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    SCHEMA.parent.mkdir(exist_ok=True)
    sys.exit(write_or_check({SCHEMA: text}))
