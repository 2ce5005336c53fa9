"""Ordering a training or an evaluation, and stopping it; what cannot come to anything is refused before."""
