# The lab for machines without NVRTC wheels (macOS, Windows): Linux, x86-64 or arm64. No GPU is needed.
#
#   docker build -t tirx-lab .
#   docker run --rm -it -v "$PWD":/lab -v tirx-lab-cache:/cache tirx-lab ./lab check 1
#
# The packages live in /venv, outside the mounted folder, so that a .venv of the host is left alone.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 lab \
    && mkdir /venv /cache /lab \
    && chown lab /venv /cache /lab

ENV LAB_VENV=/venv LAB_CACHE=/cache PYTHONUNBUFFERED=1
USER lab
WORKDIR /lab

COPY --chown=lab . .
RUN ./lab --help >/dev/null

CMD ["./lab", "doctor"]
