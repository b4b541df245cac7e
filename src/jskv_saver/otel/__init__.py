"""OpenTelemetry spans and metrics; what is not instrumented pays nothing for it.

    from jskv_saver.otel import instrument

    saver = instrument(JetStreamSaver.from_conn_string(url))

Needs `opentelemetry-api`: `pip install "jskv-saver[otel]"`. Names are in
docs/monitoring.md.
"""

try:
    import opentelemetry.trace  # noqa: F401
except ModuleNotFoundError as exc:
    raise ModuleNotFoundError(
        f"jskv_saver.otel needs opentelemetry-api (there is no {exc.name}); install it "
        'with: pip install "jskv-saver[otel]"',
        name=exc.name,
    ) from exc

from jskv_saver.otel.instrumenting import instrument

__all__ = ["instrument"]
