"""OpenTelemetry spans and metrics; what is not instrumented pays nothing for it.

    from jskv_saver.otel import instrument

    saver = instrument(JetStreamSaver.from_conn_string(url))

Needs `opentelemetry-api`: `pip install "jskv-saver[otel]"`. Names are in
docs/monitoring.md.
"""

try:
    from jskv_saver.otel.instrumenting import instrument
except ModuleNotFoundError as exc:
    if (exc.name or "").split(".")[0] != "opentelemetry":
        raise
    raise ModuleNotFoundError(
        f"jskv_saver.otel needs opentelemetry-api (there is no {exc.name}); install it "
        'with: pip install "jskv-saver[otel]"',
        name=exc.name,
    ) from exc

__all__ = ["instrument"]
