"""One HTTP endpoint in front of the team: routes in the forms of OpenAI (`openai`) and Anthropic (`anthropic`),
Podium's own (`api`), and the viewer.

A request passes the middleware (`host_check`, `in_flight`, `body_limits`) and a route; the `service` answers it.
An application in the same layer as evals and train: it imports the runner and what is below it, and only cli
imports it. No other package imports the web framework.
"""
