# docker build -t lshdup . && docker run --rm -v "$PWD:/docs" lshdup pairs .
# Without a network at run time, and not as root: --user "$(id -u):$(id -g)" makes files that are yours.
# With extras: docker build --build-arg EXTRAS='[formats,parquet,zstd]' -t lshdup .
FROM python:3.13.7-slim-bookworm@sha256:adafcc17694d715c905b4c7bebd96907a1fd5cf183395f0ebc4d3428bd22d92d AS build
ARG EXTRAS=""
COPY pyproject.toml hatch_build.py README.md LICENSE /src/
COPY lshdup /src/lshdup
RUN LSHDUP_PREBUILT=1 pip wheel --no-cache-dir --wheel-dir /wheels "/src$EXTRAS"

FROM python:3.13.7-slim-bookworm@sha256:adafcc17694d715c905b4c7bebd96907a1fd5cf183395f0ebc4d3428bd22d92d
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels pip install --no-cache-dir --no-index /wheels/*.whl
USER 1000:1000
WORKDIR /docs
ENTRYPOINT ["lshdup"]
