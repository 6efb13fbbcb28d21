"""Compiled programs kept between runs, in the user's cache folder: a second run on the same shapes starts in seconds.

``BETACORES_CACHE`` names another folder, or ``off``. Only the command line does this; the library leaves JAX as it is.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "BETACORES_CACHE"


def folder() -> Path | None:
    """Return where compiled programs are kept; None if they are not."""
    given = os.environ.get(VARIABLE, "")
    if given.lower() == "off":
        return None
    if given:
        return Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say to ignore a relative folder.
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "betacores" / "compiled"


def keep_compiled() -> None:
    """Let JAX keep compiled programs; a folder that cannot be written to is no error."""
    place = folder()
    if place is None or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if not os.access(place, os.W_OK):
        return
    # The loader compares the processor's features with those it compiled for, and complains of names it invented.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax

    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
