"""Connections, requests and subjects on NATS, for every adapter that speaks it."""
