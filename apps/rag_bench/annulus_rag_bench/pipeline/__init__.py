"""The pipeline on top of a store: a question is retrieved for, graded and answered, from the articles alone."""
