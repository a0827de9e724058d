"""Opens the encoder that the options name."""

from __future__ import annotations

from podium.baselines.encoder import Encoder, open_encoder
from podium.cli.options import NO_ENCODER, EncoderOptions
from podium.errors import UsageError


def to_encoder(options: EncoderOptions, *, recorded: bool, replay: bool) -> Encoder | None:
    """The encoder, which is the caller's to close; None: none is named.

    Args:
        recorded: whether the questions are a recording's.
        replay: whether nobody is to be asked.

    Raises:
        UsageError: options that lack each other or have no use here, or an address or key that cannot be used.
    """
    if options == NO_ENCODER:
        return None
    if options.encoder_url is None or options.encoder_model is None:
        raise UsageError("An encoder needs both --encoder-url and --encoder-model.")
    if not recorded:
        raise UsageError("--encoder-url is for the learned routers of a recording; leave it out.")
    if replay:
        raise UsageError("--replay asks nobody, and --encoder-url does; leave one of them out.")
    return open_encoder(
        options.encoder_url,
        options.encoder_model,
        key_env=options.encoder_key_env,
        called=lambda key: f"--{key.replace('_', '-')}",
    )
