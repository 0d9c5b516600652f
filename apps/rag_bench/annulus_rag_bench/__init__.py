"""Retrieval of articles from five stores behind one interface, measured, and a pipeline that answers from them."""
