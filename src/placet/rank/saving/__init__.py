"""Saved rankers: the file format, the state of each kind of ranker, and ONNX graphs."""
