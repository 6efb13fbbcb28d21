"""Draws, and the weighted rows they were drawn given, as ArviZ holds them.

=====================  ====================================================================
``posterior``          ``theta``, by chain, draw and name of the parameter
``sample_stats``       for NUTS ``divergences``, how many each chain had
``constant_data``      ``weight`` by number of the row, and ``x``, its columns
``observed_data``      ``y``, if the model has a response; the place of a label, from zero
=====================  ====================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.names import distinct

if TYPE_CHECKING:
    import arviz

    from betacores.posteriors.result import Given, Posterior


def import_arviz() -> Any:
    """Return ArviZ, or say how to get it."""
    try:
        import arviz
    except ImportError:
        raise ImportError("to_arviz() needs ArviZ; install betacores[arviz].") from None
    return arviz


def inference_data(posterior: Posterior) -> arviz.InferenceData:
    """Return the draws of a posterior as ArviZ data, with what they were drawn given."""
    arviz = import_arviz()
    import xarray

    groups = {
        "posterior": xarray.Dataset(
            {"theta": (("chain", "draw", "parameter"), np.asarray(posterior.chains))},
            {
                "chain": np.arange(posterior.chains.shape[0]),
                "draw": np.arange(posterior.chains.shape[1]),
                "parameter": distinct(posterior.names),
            },
        )
    }
    if "divergences" in posterior.diagnostics:
        counts = np.asarray(posterior.diagnostics["divergences"])
        groups["sample_stats"] = xarray.Dataset(
            {"divergences": (("chain",), counts)}, {"chain": np.arange(len(counts))}
        )
    groups |= {} if posterior.given is None else _given(posterior.given)
    for data in groups.values():
        data.attrs.update(_attributes(posterior))
    return arviz.InferenceData(**groups)


def _given(given: Given) -> dict[str, Any]:
    import xarray

    from betacores.export.ingredients import places_of

    rows = {"row": np.asarray(given.indices)}
    held = {"weight": (("row",), np.asarray(given.weights)), "x": (("row", "column"), np.asarray(given.x))}
    groups = {"constant_data": xarray.Dataset(held, {**rows, "column": distinct(given.columns)})}
    if given.y is not None:
        y = np.asarray(given.y)
        if given.labels is not None:
            # As ArviZ and its plots need a response: words go to the attributes.
            y = places_of(y, given.labels)
        response = xarray.DataArray(y, rows, ("row",))
        if given.labels is not None:
            response.attrs.update({f"label_of_{k}": str(label) for k, label in enumerate(given.labels.tolist())})
        groups["observed_data"] = xarray.Dataset({"y": response})
    return groups


def _attributes(posterior: Posterior) -> dict[str, Any]:
    from betacores import __version__

    own: dict[str, Any] = {"inference_library": "betacores", "inference_library_version": __version__}
    own |= {"sampler": posterior.sampler, "likelihood_beta": float(posterior.beta)}
    given = posterior.given
    return own if given is None else own | {"method": given.method, "model": given.model, "beta": float(given.beta)}
