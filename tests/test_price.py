"""What tokens cost, against sums by hand."""

from __future__ import annotations

import pytest

from podium.spending import Reservation
from podium.types import Limits, Price, Usage

USED = Usage(input_tokens=10_000, output_tokens=1000, cached_tokens=6000, cache_write_tokens=3000)


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        (Price(input=3.0, output=15.0), 0.03 + 0.015),
        (Price(input=3.0, output=15.0, cached_input=0.3), 4000 * 3e-6 + 6000 * 0.3e-6 + 0.015),
        (Price(input=3.0, output=15.0, cache_write=3.75), 7000 * 3e-6 + 3000 * 3.75e-6 + 0.015),
        (
            Price(input=3.0, output=15.0, cached_input=0.3, cache_write=3.75),
            1000 * 3e-6 + 6000 * 0.3e-6 + 3000 * 3.75e-6 + 0.015,
        ),
        (Price(input=3.0, output=15.0, cached_input=0.0), 4000 * 3e-6 + 0.015),
    ],
)
def test_input_out_of_a_cache_and_into_it_has_its_own_price(price: Price, usd: float) -> None:
    assert price.cost(USED) == pytest.approx(usd, abs=1e-12)
    most = Reservation.most(Limits(), price, input_tokens=10_000, output_tokens=1000).usd
    assert most >= usd, "a budget reserves the most that a call may cost"
    assert most == pytest.approx(0.015 + 0.01 * (price.cache_write or price.input))


@pytest.mark.parametrize(
    ("price", "free"),
    [
        (Price(input=0, output=0), True),
        (Price.model_validate({"input": 0}), True),
        (Price(), False),
        (Price(input=0, output=1), False),
        (Price(input=0, cache_write=1), False),
    ],
)
def test_only_a_price_that_was_written_as_0_is_declared_free(price: Price, free: bool) -> None:
    assert price.is_declared_free == free
