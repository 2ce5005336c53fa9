"""The API of studies, HITs, work and its review, people and pay. Each view parses, calls one act or read, answers."""
