"""The command `jskv`: parse arguments, call the library, print."""
