"""How the documentation is built: `make docs`, which runs every page and treats warnings as errors."""

import os
import sys
from pathlib import Path

from betacores import __version__

# Most of the time of a small page is compilation: pages share what they have compiled, with each other and with the
# next build, and the compiler is told to make less of an effort. Kernels inherit this; nothing outside the build does.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "betacores"
author = "The betacores authors"
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "command_line_page"]
source_suffix = {".md": "myst-nb"}
exclude_patterns = ["_build", "_extensions", "jupyter_execute"]
html_theme = "furo"
html_title = f"betacores {release}"

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
# Every page is run anew; one that fails, fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# What pages write stays out of the sources.
nb_execution_in_temp = True
nb_merge_streams = True

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
# Single backticks in docstrings are names of this package or of Python, some of them not documented pages.
default_role = "code"
