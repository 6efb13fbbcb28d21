"""The page on other tools does what it says: all of them find the same posterior."""

import numpy as np


def test_the_tools_of_the_page_agree(page):
    mode, drawn = page["mode"], page["data"].posterior["theta"]
    laplace = page["coreset"].posterior(4000)
    deviation = np.sqrt(np.diag(laplace.covariance))
    assert np.all(np.abs(mode - laplace.mean) < 5 * deviation / np.sqrt(4000))
    np.testing.assert_allclose(mode[:2], [2.0, -1.0], atol=0.5)
    np.testing.assert_allclose(page["classifier"].coef_[0], mode[:2], atol=0.1)
    # One chain of 500 draws against four.
    away = page["theta"].mean(0) - drawn.mean(("chain", "draw")).values
    assert np.all(np.abs(away) < 5 * deviation / np.sqrt(150))
    np.testing.assert_allclose(page["theta"].std(0), drawn.std(("chain", "draw")).values, rtol=0.25)
    # The posterior is a little skew: its mean is near its mode, not at it.
    assert np.all(np.abs(drawn.mean(("chain", "draw")).values - mode) < 0.5 * deviation)


def test_the_page_prints_what_it_promises(page):
    for part in ("age", "weight", "import pyarrow", "sample_weight=weights", "intercept: ", "ess_bulk", "r_hat"):
        assert part in page["printed"]
    assert "target += w[n]" in page["code"]
