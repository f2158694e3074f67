# Sourced by the scripts here with their arguments, BUNDLE OUT. BUNDLE is made by deploy/bundle and holds attuned and
# attune-worker with their libraries; BUNDLE/site, if it is there, Python packages (an installed attune among them, or
# attune/api.binpb is built in the source tree). The libraries are for the daemon alone: torch has its own.
#
# Sets bundle, out, client, source_tree, python, libraries and work, a folder that goes at the end, as the daemon does.

if [[ $# -ne 2 ]]; then
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi
bundle=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
client=$(realpath "$(dirname "$0")/../..")
source_tree=$(realpath "$client/../..")
python=${PYTHON:-python3}
libraries="$bundle:/usr/local/cuda/lib64"

work=$(mktemp -d)
daemon=
stop_daemon() {
  if [[ -n $daemon ]]; then
    kill "$daemon"
    wait "$daemon" || true
    daemon=
  fi
}
finish() {
  stop_daemon
  rm -rf "$work"
}
trap finish EXIT

export PYTHONPATH="$bundle/site:$client${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
"$python" -c 'import attune.api' || {
  echo "$(basename "$0"): attune cannot be imported from $bundle/site or $client" >&2
  exit 1
}

# Sets ATTUNE_SERVER, and returns when the daemon answers there. It writes to OUT/daemon.txt:
#
#   start_daemon [NAME [FLAG...]]
#
# With a NAME its store is a new one, and it writes to OUT/NAME.txt. One that runs already ends.
start_daemon() {
  local name=${1:-daemon}
  stop_daemon
  LD_LIBRARY_PATH=$libraries "$bundle/attuned" --listen="unix:$work/attuned.sock" --data_dir="$work/data-$name" \
    --lock_dir="$work/locks" --kernels_dir="$source_tree/kernels_src" "${@:2}" 2>"$out/$name.txt" &
  daemon=$!
  export ATTUNE_SERVER="unix:$work/attuned.sock"
  "$python" -c '
import attune, sys, time
client, end = attune.Client(), time.monotonic() + 60
while True:
    try:
        sys.exit(client.ping())
    except attune.Unreachable:
        if time.monotonic() > end:
            raise
'
}
