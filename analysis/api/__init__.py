"""The API of agreement, exports and imports. Each view parses, calls one act or read, answers."""
