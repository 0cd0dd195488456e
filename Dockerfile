# One image for every process of Pullcord; the command decides which one it is.
ARG PYTHON=3.13-slim

FROM python:${PYTHON} AS build
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /pullcord
COPY requirements.lock requirements-dev.lock package.json package-lock.json .npmrc ./
COPY board/management/setup.py board/management/setup.py
RUN python board/management/setup.py
COPY . .
RUN .venv/bin/python -m compileall -q board agents && rm -rf node_modules .venv/bin/uv .venv/bin/uvx

FROM python:${PYTHON}
# git makes the workspaces, bubblewrap is the sandbox of agents' commands.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git openssh-client tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 pullcord \
    && install -d -m 700 -o pullcord -g pullcord /data
COPY --from=build /pullcord /pullcord
WORKDIR /pullcord
USER pullcord
ENV PATH=/pullcord/.venv/bin:$PATH PULLCORD_DATA=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8400
ENTRYPOINT ["tini", "--"]
CMD ["python", "manage.py", "up", "--host", "0.0.0.0"]
