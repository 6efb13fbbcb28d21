"""Constraints: every one keeps to its set, goes both ways, and has the Jacobian of finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.models.layout import layout_of, plain_layout
from betacores.models.transforms import constraint

CASES = {
    "real": ("real", (3,), lambda v: np.isfinite(v).all()),
    "positive": ("positive", (3,), lambda v: (v > 0).all()),
    "unit": ("unit", (3,), lambda v: ((v > 0) & (v < 1)).all()),
    "bounded": (("bounded", -2.0, 5.0), (3,), lambda v: ((v > -2) & (v < 5)).all()),
    "above": (("above", 1.5), (3,), lambda v: (v > 1.5).all()),
    "below": (("below", 1.5), (3,), lambda v: (v < 1.5).all()),
    "ordered": ("ordered", (4,), lambda v: (np.diff(v) > 0).all()),
    "simplex": ("simplex", (4,), lambda v: (v > 0).all() and abs(v.sum() - 1) < 1e-6),
}


@pytest.mark.parametrize("name", CASES)
def test_forward_keeps_to_the_set_and_has_its_jacobian(name):
    given, shape, holds = CASES[name]
    kept = constraint(given)
    free = np.random.default_rng(0).normal(size=kept.free_shape(shape))
    with jax.enable_x64(True):
        value, log_jacobian = kept.forward(jnp.asarray(free))
        assert value.shape == shape
        assert holds(np.asarray(value))
        np.testing.assert_allclose(kept.inverse(value), free, atol=1e-8)
        # The last piece of a stick is what the others leave: its density is that of the others.
        count = free.size
        step = 1e-6
        columns = [
            (np.asarray(kept.forward(jnp.asarray(free + step * e))[0]) - np.asarray(value))[:count] / step
            for e in np.eye(count)
        ]
        np.testing.assert_allclose(log_jacobian, np.linalg.slogdet(np.array(columns))[1], atol=1e-4)


def test_zeros_are_equal_pieces_of_a_simplex():
    np.testing.assert_allclose(constraint("simplex").forward(jnp.zeros(4))[0], np.full(5, 0.2), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("positve", "positve.*positive"),
        (("bounded", 1.0), "bounded.*low, high"),
        (("bounded", 2.0, 1.0), "low < high"),
        (("above", float("inf")), "above"),
        (("positive", 1.0), "expected 'positive'"),
    ],
)
def test_wrong_constraints_are_refused_and_named(given, message):
    with pytest.raises(ValueError, match=f"^constraints.*{message}"):
        constraint(given)


def test_layouts_go_both_ways_and_name_every_entry():
    layout = layout_of(
        {"slope": (2,), "noise": (), "mix": np.ones(3)}, {"noise": "positive", "mix": "simplex", "slope": "real"}
    )
    assert layout.size == 5
    assert layout.entry_names() == ["free(mix)[0]", "free(mix)[1]", "log(noise)", "slope[0]", "slope[1]"]
    given = {"slope": np.array([1.0, -2.0]), "noise": 0.5, "mix": np.array([0.2, 0.3, 0.5])}
    back = layout(jnp.asarray(layout.inverse(given), jnp.float32))
    for name, value in given.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-5)
    assert hash(layout) == hash(
        layout_of({"slope": (2,), "noise": (), "mix": (3,)}, dict(noise="positive", mix="simplex"))
    )


def test_layouts_say_what_is_wrong_with_a_start():
    layout = layout_of({"slope": (2,), "noise": ()}, {"noise": "positive"})
    with pytest.raises(ValueError, match=r"start: expected parameters \{noise: \(\) positive, slope: \(2,\)\}"):
        layout.inverse({"slope": np.zeros(2)})
    with pytest.raises(ValueError, match=r"start: expected slope of shape \(2,\), got shape \(3,\)"):
        layout.inverse({"slope": np.zeros(3), "noise": 1.0})
    with pytest.raises(ValueError, match=r"start: noise must be positive, got -1"):
        layout.inverse({"slope": np.zeros(2), "noise": -1.0})


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="no parameter 'nois'"):
        layout_of({"noise": ()}, {"nois": "positive"})
    with pytest.raises(TypeError, match="expected 'a' to be a shape or numbers, got 'b'"):
        layout_of({"a": "b"})
    with pytest.raises(ValueError, match="'simplex' is for vectors"):
        layout_of({"a": ()}, {"a": "simplex"})
    with pytest.raises(ValueError, match="empty"):
        layout_of({})


def test_a_plain_vector_has_numbered_names():
    assert plain_layout(3).entry_names() == ["theta0", "theta1", "theta2"]
    assert plain_layout(2, ("a", "b")).entry_names() == ["a", "b"]
