# The image: one static binary on distroless, uid 1000, gid 0 (docs/docker.md).
#
#   docker build -t doze-kafka .
#   docker buildx build --platform linux/amd64,linux/arm64 .   # cross-compiled: nothing of the target is run
#
# Both base images can be replaced, by mirrors or by pinned digests.
ARG BUILD_IMAGE=golang:1.26-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:latest

FROM --platform=$BUILDPLATFORM $BUILD_IMAGE AS build
WORKDIR /src
# What a fresh named volume gets its mode from, and by the COPY below its owner.
RUN mkdir -p /volume/data && chmod 0775 /volume/data
COPY . .
ARG VERSION=devel
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOFLAGS=-mod=readonly GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /broker ./cmd/broker

FROM $BASE_IMAGE
COPY --from=build /broker /usr/local/bin/broker
COPY LICENSE /usr/share/doc/doze-kafka/LICENSE
# Owned by uid 1000 and writable for group 0: a random uid with gid 0, as OpenShift gives, works too (FX-31).
COPY --from=build --chown=1000:0 /volume/ /var/lib/kafka/
# The image's own defaults: whatever a user says, be it in Kafka's variables, wins over DOZE_KAFKA_IMAGE_ (FX-3).
ENV DOZE_KAFKA_CONTAINER=true \
    DOZE_KAFKA_IMAGE_DATA_DIR=/var/lib/kafka/data \
    DOZE_KAFKA_IMAGE_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    DOZE_KAFKA_IMAGE_HTTP_LISTEN=0.0.0.0:9080
USER 1000:0
WORKDIR /var/lib/kafka
VOLUME /var/lib/kafka/data
EXPOSE 9092 9080
STOPSIGNAL SIGTERM
# A Kafka round trip by the binary itself, as there is no shell. The first one comes an interval after the start: hence 1 s.
HEALTHCHECK --interval=1s --timeout=3s --start-period=30s --retries=3 CMD ["/usr/local/bin/broker", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/broker"]
# Last, as they change with every commit.
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="doze-kafka" \
      org.opencontainers.image.description="A single-node Kafka broker with its data on disk, for test suites and laptops" \
      org.opencontainers.image.source="https://github.com/dozekafka/doze-kafka" \
      org.opencontainers.image.documentation="https://github.com/dozekafka/doze-kafka/blob/main/docs/docker.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
