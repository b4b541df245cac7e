"""The document port over NATS: a service, and a store that asks it."""
