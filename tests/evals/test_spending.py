from podium.planners.answers import _called


def test_the_cache_of_votes_has_a_bound():
    assert _called.cache_info().maxsize is not None
