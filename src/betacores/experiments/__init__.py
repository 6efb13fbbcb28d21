"""The paper's experiments and the demonstration: configuration, runner, figures, stored results."""
