"""One HTTP endpoint in front of the team: routes in the forms of OpenAI (`openai`) and Anthropic (`anthropic`),
Podium's own (`api`), and the viewer.

A request passes the middleware (`gate`, `in_flight`, `body_limits`) and a route, and the `service` answers it.
The server is an application in the same layer as evals and train: it imports the runner and lower layers, and only cli
imports it. No other package imports the web framework.
"""
