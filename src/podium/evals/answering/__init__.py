"""Questions that planners answer into files, for suites, studies and recordings: nothing is asked or paid twice."""
