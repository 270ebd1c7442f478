#!/usr/bin/env bash
# Runs a day's work of every client library against a gateway.
#
#   tests/clients/run.sh [PROGRAM]
#
# PROGRAM is the gateway to start (target/release/respgate by default); with RESPGATE_ADDR=host:port it uses a server
# that runs already. What the clients need is installed outside the checkout, in ${XDG_CACHE_HOME:-~/.cache}/respgate.
# A language whose tools are missing is skipped; with CI=true that is a failure.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/respgate/clients
work=$(mktemp -d)
passed=0 failed=0 skipped=0

# Ends the gateway and takes its data away.
clean_up() {
    if [[ -n ${gateway_pid:-} ]]; then
        kill "$gateway_pid" 2>/dev/null || true
        wait "$gateway_pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT

# Starts a gateway on a free port and waits until it says where it listens.
start_gateway() {
    local program=$1 line
    [[ -x $program ]] || { echo "no program at $program: build it, or name it as the argument" >&2; exit 1; }
    mkfifo "$work/log"
    "$program" --bind 127.0.0.1 --port 0 --data-dir "$work/data" 2>"$work/log" >/dev/null &
    gateway_pid=$!
    exec 3<"$work/log"
    while read -r line <&3; do
        if [[ $line =~ listening\ on\ ([0-9.]+:[0-9]+) ]]; then
            RESPGATE_ADDR=${BASH_REMATCH[1]}
            cat <&3 >/dev/null &
            return
        fi
        echo "$line" >&2
    done
    echo "the gateway ended before it listened" >&2
    exit 1
}

redis_py() {
    [[ -x venv/bin/python ]] || python3 -m venv venv
    venv/bin/pip install --quiet --requirement requirements.txt
    venv/bin/python day.py
}

ioredis() {
    npm ci --no-audit --no-fund --silent
    node day.js
}

go_redis() {
    go build -o day .
    ./day
}

jedis() {
    mvn --batch-mode --quiet dependency:copy-dependencies -DoutputDirectory=libraries
    java -cp "libraries/*" Day.java
}

# run NAME FUNCTION TOOL...: one client, in a copy of its folder.
run() {
    local name=$1 function=$2 tool
    shift 2
    for tool in "$@"; do
        if ! command -v "$tool" >/dev/null; then
            echo "== $name: skipped, $tool is not installed"
            skipped=$((skipped + 1))
            return
        fi
    done
    echo "== $name"
    mkdir -p "$cache/$name"
    cp -r "$here/$name/." "$cache/$name"
    # In a shell of its own: within an if, or before ||, the shell would not stop at the first error.
    if bash -euo pipefail -c "cd '$cache/$name'; $(declare -f "$function"); $function"; then
        passed=$((passed + 1))
    else
        echo "== $name: FAILED"
        failed=$((failed + 1))
    fi
}

[[ -n ${RESPGATE_ADDR:-} ]] || start_gateway "${1:-$here/../../target/release/respgate}"
export RESPGATE_ADDR

run redis-py redis_py python3
run go-redis go_redis go
run ioredis ioredis node npm
run jedis jedis java mvn

echo "clients: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && (${CI:-} != true || $skipped -eq 0) ]]
