#!/usr/bin/env python3
"""Count, minimum, mean and maximum of a column of numbers in a CSV file of the workspace. Python's own library alone."""
import csv
import json
import sys

DESCRIPTION = {
    "name": "csv_stats",
    "description": "Count, minimum, mean and maximum of one column of numbers in a CSV file with a header line.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The CSV file, relative to the workspace"},
            "column": {"type": "string", "description": "The name of the column in the header line"},
        },
        "required": ["path", "column"],
        "additionalProperties": False,
    },
}


def stats(path, column):
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if column not in (reader.fieldnames or []):
            raise ValueError(f'no column "{column}" in {path}; there are: {", ".join(reader.fieldnames or [])}')
        values = [float(row[column]) for row in reader if (row[column] or "").strip()]
    if not values:
        raise ValueError(f'column "{column}" is empty')
    return {"count": len(values), "min": min(values), "mean": sum(values) / len(values), "max": max(values)}


if __name__ == "__main__":
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(DESCRIPTION))
        sys.exit(0)
    try:
        print(json.dumps(stats(**json.loads(sys.argv[1]))))
    except Exception as error:
        sys.exit(f"csv_stats: {error}")
