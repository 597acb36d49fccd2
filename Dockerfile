# Two stages: the wheels are built beside a Rust toolchain, the image that runs holds Python and what they need.
# Both are of one Debian release, so the native wheel finds the C library it was linked with.

FROM rust:1.90-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY constraints.txt ./
RUN python3 -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt maturin hatchling
# The native core first: it takes minutes and changes less often.
COPY native native
RUN /tools/bin/maturin build --release --locked --manifest-path native/Cargo.toml --out /wheels
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY kektor kektor
COPY server server
RUN /tools/bin/pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.13-slim-bookworm
# The files are named, so that no package of the same name on an index can take their place.
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore -c /constraints.txt \
        /wheels/kektor_native-*.whl "$(echo /wheels/kektor-*.whl)[server]" \
    && useradd --system --user-group --uid 10001 --home-dir /data --shell /usr/sbin/nologin kektor \
    && install --directory --owner kektor --group kektor --mode 0700 /data
USER kektor
ENV KEKTOR_DATA=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 9091
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD \
    ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ.get('KEKTOR_PORT', 9091)}/healthz\", timeout=2)"]
# Listening off loopback is refused until KEKTOR_INSECURE=on says that whoever reaches the port may own every memory:
#   docker run -p 127.0.0.1:9091:9091 -v kektor:/data -e KEKTOR_INSECURE=on kektor
ENTRYPOINT ["kektor"]
CMD ["serve", "--host", "0.0.0.0"]
