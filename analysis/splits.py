"""Parting texts so that none has a near-duplicate in another part. Pure."""
