# The image holds Python, the program, its pinned packages and the shipped policies; nothing of the tests, no
# compiler and no pip of its own. For several platforms: docker buildx build --platform linux/amd64,linux/arm64 .
# `make image` builds a release and takes no base without a digest; the tag here is for trying things out.
ARG PYTHON=python:3.11.14-slim-bookworm

FROM ${PYTHON} AS build
# requirements-image-otel.lock has what `--traces` needs, too.
ARG LOCK=requirements-image.lock
WORKDIR /opt/src
COPY requirements-build.lock requirements-image.lock requirements-image-otel.lock ./
# Wheels only: what would need a compiler fails here, and not later.
RUN python3 -m venv --without-pip /opt/build \
 && python3 -m pip --python /opt/build/bin/python install --no-cache-dir --require-hashes --only-binary=:all: -r requirements-build.lock
RUN python3 -m venv --without-pip /opt/podgate \
 && python3 -m pip --python /opt/podgate/bin/python install --no-cache-dir --require-hashes --only-binary=:all: -r "$LOCK"
# podgate sends raw requests: the client library's models and APIs, which it loads on demand, are 100 MB.
RUN cd /opt/podgate/lib/python3*/site-packages/kubernetes && rm -rf aio \
 && find client/models client/api -type f ! -name "__init__*" -delete
COPY pyproject.toml README.md LICENSE ./
COPY webhook webhook
COPY certs certs
COPY policies policies
COPY deploy/crds deploy/crds
RUN python3 -m pip --python /opt/build/bin/python wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist . \
 && python3 -m pip --python /opt/podgate/bin/python install --no-cache-dir --no-deps --no-index dist/*.whl

FROM ${PYTHON}
COPY --from=build /opt/podgate /opt/podgate
ENV PATH=/opt/podgate/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 9443 8080
ENTRYPOINT ["podgate"]
CMD ["serve"]
