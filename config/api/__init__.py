"""The API's frame: who may come in, what errors and pages look like, how it is described. What it offers stands in
each app's ``api``."""
