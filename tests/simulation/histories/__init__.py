"""A state machine that Hypothesis drives: what people do to a stage, in any order, and at every
moment what must hold of it."""
