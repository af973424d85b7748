"""A chain of elementwise functions, written as a formula, made one kernel a way in an Op file."""
