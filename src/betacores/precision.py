"""The precision every computation is made in, whatever the caller has set JAX to and whatever the device prefers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def single_precision() -> Iterator[None]:
    """Compute in single precision, all of its digits.

    Graphics processors multiply matrices with ten bits of each factor unless told otherwise, and a mode is then off by
    more than its posterior's width.
    """
    with jax.enable_x64(False), jax.default_matmul_precision("highest"):
        yield
