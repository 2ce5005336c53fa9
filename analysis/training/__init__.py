"""Training a toxicity classifier: a head on frozen embeddings, or all of a transformers model. Pure torch."""
