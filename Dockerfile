# A server in a container. Build it with: docker build --tag podium .
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/podium && /opt/podium/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve,postgres,otel]'

FROM python:3.12-slim
COPY --from=build /opt/podium /opt/podium
RUN useradd --uid 1000 --create-home podium
USER 1000
WORKDIR /home/podium
EXPOSE 8080
HEALTHCHECK CMD ["/opt/podium/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/healthz')"]
ENTRYPOINT ["/opt/podium/bin/podium"]
CMD ["serve", "--host", "0.0.0.0"]
