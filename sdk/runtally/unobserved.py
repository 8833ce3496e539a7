"""The library's own requests, kept out of the traces of the process."""

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Instrumentations of OpenTelemetry make no spans in here: a span for each message that was
    sent would have to be sent in turn, without end."""
    context = sys.modules.get("opentelemetry.context")  # where it is not loaded, nothing observes
    if context is None:
        yield
        return
    # Private by name, but what every exporter sets; the text is the key of older releases.
    key = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation")
    token = context.attach(context.set_value(key, True))
    try:
        yield
    finally:
        context.detach(token)
