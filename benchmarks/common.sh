# Functions of the benchmark scripts, which source this file. They start a server on loopback that
# stops when the script ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ANNULUS=${ANNULUS:-target/release/annulus}
CQL_PORT=${CQL_PORT:-29242}
HTTP_PORT=${HTTP_PORT:-26280}
CQL=127.0.0.1:$CQL_PORT
HTTP=http://127.0.0.1:$HTTP_PORT
OUT=${OUT:-target/bench}
DATA=${DATA:-target/bench-data}
WORK=$(mktemp -d)
server_pid=
store_pid=
mkdir -p "$OUT" "$DATA"

# SERVER_CPUS and CLIENT_CPUS pin the processes, in the syntax of `taskset -c`. REALTIME is a
# priority such as 10 (needs root). With it client and server run before all other processes, to
# measure latencies on a machine that has other work. The server gets it only once its table is
# filled: a worker of the storage engine spins on messages until another is done, and with real-time
# priority it would never let that one run on the same processor.
bench() { ${REALTIME:+chrt -f "$REALTIME"} ${CLIENT_CPUS:+taskset -c "$CLIENT_CPUS"} "$ANNULUS" bench "$@"; }

# Scales seconds by SCALE: SCALE=0.2 gives a quick look.
seconds() { awk -v s="$1" -v f="${SCALE:-1}" 'BEGIN { print s * f }'; }

await() { # file with a ready line, process id
  for _ in $(seq 300); do
    grep -q ready "$1" && return
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  echo "$0: the server did not start:" >&2
  cat "$1" >&2
  exit 1
}

start_server() { # arguments of `annulus serve`; PRELOAD names a library to load first
  LD_PRELOAD=${PRELOAD:-} ${SERVER_CPUS:+taskset -c "$SERVER_CPUS"} "$ANNULUS" serve --data-dir "$WORK/data" --cql-port "$CQL_PORT" --http-port "$HTTP_PORT" \
    --log warn "$@" >"$WORK/server" 2>&1 &
  server_pid=$!
  await "$WORK/server" "$server_pid"
}

STORE=http://127.0.0.1:$((HTTP_PORT + 1))
start_store() { # arguments of `annulus store`, which is at $STORE when this returns, with its index
  ${SERVER_CPUS:+taskset -c "$SERVER_CPUS"} "$ANNULUS" store --scylladb-uri "$CQL" --uri "127.0.0.1:$((HTTP_PORT + 1))" \
    --index-dir "$WORK/store-indexes" "$@" >"$WORK/store" 2>&1 &
  store_pid=$!
  until curl -sf "$STORE/api/v1/indexes/bench/vectors_v/status" | grep -q SERVING; do
    kill -0 "$store_pid" || { cat "$WORK/store" >&2; exit 1; }
    sleep 0.2
  done
}

start_layout() { # threads for sockets, threads for searches (0: none of their own)
  # Searches stay on the threads of the sockets however long they take, or never do.
  if [ "$2" = 0 ]; then
    start_store --async-threads "$1" --threads "$1" --inline-searches-us 10000000
  else
    start_store --async-threads "$1" --threads "$2" --inline-searches-us 0
  fi
}

stop_store() {
  stop_one "$store_pid"
  store_pid=
}

stop_one() { [ -z "$1" ] || { kill "$1" && wait "$1" || true; } 2>/dev/null; }

stop_server() {
  stop_one "$server_pid"
  server_pid=
}

cleanup() {
  stop_one "$store_pid"
  stop_server
  rm -rf "$WORK"
}
trap cleanup EXIT

# The bundled texts, and the same texts lifted into 1,536 dimensions (made once, which takes some
# seconds).
TEXTS=benchmarks/ann/data/texts50k
lifted() { # vectors
  local set=$DATA/lifted1536-$1
  [ -e "$set/query.fbin" ] || bench data lift --data "$TEXTS" --rows "$1" --out "$set" >&2
  echo "$set"
}

fill() { # --data and other arguments of both; the index is built when this returns
  bench build-table --cql "$CQL" "$@" --json "$OUT/$NAME.jsonl"
  bench build-index --cql "$CQL" --http "$HTTP" ${INDEX_OPTIONS:-} --json "$OUT/$NAME.jsonl"
  [ -z "${REALTIME:-}" ] || chrt -a -f -p "$REALTIME" "$server_pid"
}

begin() { # name of the results
  NAME=$1
  rm -f "$OUT/$NAME.jsonl"
  [ -x "$ANNULUS" ] || cargo build --release --locked -p annulus -p annulus-bench >&2
}

finish() {
  bench report "$OUT/$NAME.jsonl" --output "$OUT/$NAME.html" --png "$OUT/$NAME"
  echo "$OUT/$NAME.jsonl, $OUT/$NAME.html and the charts in $OUT/$NAME/" >&2
}
