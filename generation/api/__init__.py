"""The API of groups, demonstrations, trials, runs and generations. Each view parses, calls one act or read, answers."""
