"""Prints the JSON Schema of a message body.

python -m runtally.schema > events/schema/message-v1.json
"""

import json
import sys

import msgspec

from runtally import wire

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def message_schema() -> dict[str, object]:
    """What `runtally.wire` accepts as a message body: events, or a claim on where they are."""
    (envelope, claim), definitions = msgspec.json.schema_components(
        [wire.Envelope, wire.ClaimEnvelope], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": _DIALECT,
        "title": f"runtally message, version {wire.VERSION}",
        "description": "The body of an SQS message. Fields that are not named here are ignored.",
        "oneOf": [envelope, claim],
        "$defs": definitions,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(message_schema(), indent=2) + "\n")
