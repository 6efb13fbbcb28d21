"""Compiled programs with settings of the compiler that only processors have.

Where an accelerator computes, and where the compiler no longer knows a setting, a program is compiled without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from typing import Any

import jax

# Whole vector registers, where the processor has wide ones, make exponentials and logarithms a third cheaper.
WIDE = {"xla_cpu_prefer_vector_width": 512}


class Program:
    """A function, compiled as it is first called for the device that computes.

    Parameters
    ----------
    function
        What is compiled.
    on_processors
        Settings of the compiler there.
    **given
        What else `jax.jit` is to be told.
    """

    __qualname__: str

    def __init__(self, function: Callable[..., Any], on_processors: dict[str, Any], **given: Any):
        update_wrapper(self, function)
        self._function, self._on_processors, self._given = function, tuple(on_processors.items()), given

    @cached_property
    def compiled(self) -> Any:
        """The function, as JAX compiles it."""
        known = jax.default_backend() == "cpu" and _known(self._on_processors)
        return jax.jit(self._function, **self._given, compiler_options=dict(self._on_processors) if known else None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function does."""
        return self.compiled(*args, **kwargs)

    def __reduce__(self) -> str:
        """Return the name under which other processes find it."""
        return self.__qualname__


def block_program(function: Callable[..., Any], **given: Any) -> Program:
    """Make the program that passes run of a function of a block's rows; what it calls is no program itself."""
    return Program(function, WIDE, **given)


@cache
def _known(settings: tuple[tuple[str, Any], ...]) -> bool:
    """Return whether this compiler takes some settings."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(settings)).lower().compile()
    except Exception:
        return False
    return True
