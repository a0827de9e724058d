"""The orchestra: small language models that know different parts of a made-up world, and how they are taught.

`abilities` says what each worker knows, `lessons` writes what it is taught, `working` the computations in writing.
"""
