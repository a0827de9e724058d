from podium.rollout.spending import _asked


def test_the_cache_of_votes_has_a_bound():
    assert _asked.cache_info().maxsize is not None
