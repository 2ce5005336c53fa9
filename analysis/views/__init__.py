"""The workspace's Analyse and Data pages."""
