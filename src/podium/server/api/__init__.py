"""The `/api` routes, for the viewer and for programs: questions in the background, traces, runs, the pool."""
