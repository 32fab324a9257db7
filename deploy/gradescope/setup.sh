#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the autograder's image.
set -euo pipefail
here=${AUTOGRADER_ROOT:-/autograder}/source
home=/usr/local/lib/course
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# bubblewrap makes the sandbox where the container allows one.
apt-get install -y -qq bubblewrap
apt-get install -y -qq python3.11 python3.11-venv || apt-get install -y -qq python3 python3-venv
python=$(command -v python3.11 || command -v python3)
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Python 3.11 or newer is needed, and this image has $("$python" --version):" \
    "choose a newer base image, Ubuntu 24.04 for instance." >&2
  exit 1
}
"$python" -m venv "$home"
"$home/bin/pip" install --quiet --constraint "$here/requirements.lock" --requirement "$here/requirements.txt"
chmod -R go-rwx "$here"
