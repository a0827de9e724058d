"""The orchestra: small language models that know different parts of a made-up world, and how they are taught.

`abilities` says what each worker knows, `lessons` writes what it is taught, from the sentences of `steps` and the
computations of `working`, and `training` trains and measures it. `laboratory` and `plans` write the SFT examples of a
Conductor over them.
"""
