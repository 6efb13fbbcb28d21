"""Order statistics by one sort, against NumPy's own."""

import numpy as np
import pytest

from betacores.robust import medians, quantiles

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 1001])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_quantiles_are_those_of_numpy(rows, kind):
    x = np.exp(2 * RANDOM.standard_normal((rows, 4))).astype(kind)
    shares = (0.0, 0.005, 0.25, 0.5, 0.995, 1.0)
    found = quantiles(x, shares)
    assert found.dtype == kind
    np.testing.assert_allclose(found, np.quantile(x, shares, axis=0), rtol=1e-5 if kind == np.float32 else 1e-12)


def test_medians_of_columns_and_of_a_single_one():
    x = RANDOM.standard_normal((500, 3))
    np.testing.assert_allclose(medians(x), np.median(x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(medians(x[:, 1]), np.median(x[:, 1]), rtol=1e-12)


def test_cells_without_end_move_no_median():
    x = np.array([[-np.inf, 1.0], [2.0, np.inf], [3.0, np.inf]])
    np.testing.assert_array_equal(medians(x), [2.0, np.inf])
    assert medians(np.array([1.0, 2.0, 1e308, np.inf])) == np.median([2.0, 1e308])
