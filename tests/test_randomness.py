"""Random numbers on the host: the same for the same key, of the right distribution, and keys as JAX divides them."""

import jax
import numpy as np
import pytest
from scipy import stats

from betacores.randomness import MOST_KEYS, generator, normals, split


@pytest.mark.parametrize("count", [1, 2, 5, MOST_KEYS])
def test_keys_are_those_of_an_array_of_them(count):
    key = jax.random.key(3)
    words = [np.asarray(jax.random.key_data(part)).tolist() for part in split(key, count)]
    assert words == np.asarray(jax.random.key_data(jax.random.split(key, count))).tolist()


def test_more_keys_than_one_program_gives_are_an_error():
    with pytest.raises(ValueError, match="count: at most 8 keys, got 9"):
        split(jax.random.key(0), MOST_KEYS + 1)


def test_numbers_are_normal_and_those_of_the_key():
    first, second = split(jax.random.key(0), 2)
    numbers = normals(first, (400, 50))
    assert numbers.shape == (400, 50)
    assert numbers.dtype == np.float32
    assert stats.kstest(numbers.ravel(), "norm").pvalue > 1e-3
    np.testing.assert_array_equal(numbers, normals(first, (400, 50)))
    assert abs(np.corrcoef(numbers.ravel(), normals(second, (400, 50)).ravel())[0, 1]) < 0.03
    assert generator(first).integers(1 << 30) != generator(second).integers(1 << 30)
