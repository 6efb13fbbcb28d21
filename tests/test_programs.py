"""Programs are compiled with settings where the compiler takes them, and without elsewhere."""

import pickle

import jax
import pytest

from betacores.programs import WIDE, Program, _known
from betacores.scores import block_scores


def double(x):
    """Return twice as much."""
    return 2 * x


@pytest.fixture
def settings_given(monkeypatch):
    """The settings with which `jax.jit` is called for `double`."""
    given, plain = [], jax.jit

    def told(function, **settings):
        if function is double:
            given.append(settings.get("compiler_options"))
        return plain(function, **settings)

    monkeypatch.setattr(jax, "jit", told)
    return given


def test_processors_get_the_settings(settings_given):
    assert _known(tuple(WIDE.items()))
    program = Program(double, WIDE)
    assert settings_given == []  # nothing is decided before it is called
    assert program(3) == program(3) == 6
    assert settings_given == [WIDE]


def test_what_the_compiler_does_not_know_is_left_out(settings_given):
    with pytest.raises(Exception, match="no_such_setting"):
        jax.jit(lambda: 0, compiler_options={"xla_no_such_setting": 1}).lower().compile()
    assert Program(double, {"xla_no_such_setting": 1})(3) == 6
    assert settings_given == [None]


def test_accelerators_get_no_settings_of_processors(settings_given, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert Program(double, WIDE)(3) == 6
    assert settings_given == [None]


def test_a_program_has_the_name_of_its_function_and_is_found_by_it():
    program = Program(double, WIDE)
    assert (program.__qualname__, program.__module__, program.__doc__) == ("double", __name__, double.__doc__)
    assert program(2) == 4
    assert pickle.loads(pickle.dumps(block_scores)) is block_scores
