"""One HTTP endpoint in front of the team: routes in the forms of OpenAI (`openai`) and Anthropic (`anthropic`),
Podium's own (`api`), and the viewer.

A request passes the middleware (`outer_middleware`, `in_flight`, `body_limits`) and a route, and the `service` answers
it. The server is an application in the same layer as evals and train: only cli imports it, and no other package imports
the web framework.
"""
