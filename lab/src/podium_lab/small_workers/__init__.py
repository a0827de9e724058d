"""The orchestra: small language models that know different parts of a made-up world, and how they are taught.

`lessons` writes what each worker is taught, and `training` trains and measures it.
"""
