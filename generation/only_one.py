"""Keeping one model in memory: the last one goes before the next one comes."""

import functools
import gc
from collections.abc import Callable
from typing import Any

import torch


def only_one(load: Callable[..., Any]) -> Callable[..., Any]:
    """Like ``functools.lru_cache(maxsize=1)``, but two models never need room at once.

    >>> loaded = only_one(lambda name: [name])
    >>> loaded("a") is loaded("a"), loaded("b")
    (True, ['b'])
    """
    kept: dict[Any, Any] = {}

    @functools.wraps(load)
    def loaded(*names: Any, **options: Any) -> Any:
        key = (names, tuple(sorted(options.items())))
        if key not in kept:
            kept.clear()
            gc.collect()  # models refer to themselves
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            kept[key] = load(*names, **options)
        return kept[key]

    return loaded
