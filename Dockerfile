# An image of `annulus serve`: docker build -t annulus . (docs/install.md says how to run it).

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Of the commit and its time, which the sources here don't know: --build-arg ANNULUS_COMMIT=$(git rev-parse --short=12 HEAD)
ARG ANNULUS_COMMIT
ARG SOURCE_DATE_EPOCH
RUN cargo build --profile dist --locked -p annulus

FROM debian:bookworm-slim
RUN useradd --system --uid 999 --home-dir /var/lib/annulus --shell /usr/sbin/nologin annulus
RUN install -d -o annulus -g annulus -m 0750 /var/lib/annulus
COPY --from=build /source/target/dist/annulus /usr/local/bin/annulus
COPY LICENSE LICENSES-THIRD-PARTY.txt samples/movies/README.md /usr/share/doc/annulus/
USER annulus
WORKDIR /var/lib/annulus
ENV ANNULUS_DATA_DIR=/var/lib/annulus/data
VOLUME /var/lib/annulus
EXPOSE 9042 6080
# As docker stops it.
STOPSIGNAL SIGTERM
# With --login or TLS: ANNULUS_HTTP, ANNULUS_HTTP_USER and the like, as `annulus status --help` has them.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["annulus", "status"]
ENTRYPOINT ["annulus"]
# Within a container loopback is of no use. Publish the ports on 127.0.0.1, or give other arguments: --login and TLS.
CMD ["serve", "--listen", "0.0.0.0", "--insecure"]
