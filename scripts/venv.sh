# Sourced by the scripts beside it: makes .venv in the repository root and keeps it in step with pyproject.toml.
#
# A stamp in .venv says that a set of packages is installed whole: it holds where the checkout lies, which Python .venv
# runs on and the checksum of pyproject.toml, and is written last. Without any stamp .venv is made anew, so an install that
# was interrupted is never taken for a whole one. The lock is the kernel's, held through file descriptor 9 by this shell
# and by the pip it runs: it cannot outlive them.
#
# Needs: $here, the absolute path of this folder. Gives: $root, $venv and use_venv.

root=$(dirname "$here")
venv=$root/.venv

# keep_bytecode: processes started by the hundred are not compiled anew each time (0.4 s of CPU), whatever the caller's shell says.
keep_bytecode() {
    unset PYTHONDONTWRITEBYTECODE
    export PYTHONPYCACHEPREFIX="$venv/bytecode"
}

say() { printf 'crawlkit: %s\n' "$*" >&2; }

fail() {
    say "$@"
    exit 1
}

# use_venv run|test: returns once the packages of that set are installed.
use_venv() {
    venv_is_current "$1" && return
    find_python
    mkdir -p "$venv" && exec 9>"$venv/lock" || fail "cannot write to $venv"
    take_lock || fail "cannot lock $venv/lock"
    venv_is_current "$1" || install_set "$1"
    exec 9>&-
}

venv_is_current() { [ -x "$venv/bin/python" ] && [ "$(cat "$venv/stamp-$1" 2>/dev/null)" = "$(identity) $(checksum)" ]; }

identity() { printf '%s %s' "$root" "$(readlink -f "$venv/bin/python")"; }

checksum() { cksum <"$root/pyproject.toml"; }

find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null </dev/null && break
        python=
    done
    [ -n "$python" ] || fail "needs Python 3.11 or newer; python3 here is: $(python3 --version 2>&1 || true)"
    "$python" -c 'import ensurepip, venv' 2>/dev/null </dev/null ||
        fail "$python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"
}

take_lock() {
    "$python" -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("crawlkit: another process is installing into .venv; waiting for it", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
' </dev/null
}

# Standard output is the data of the command to come, and standard input its seeds: pip gets neither.
install_set() {
    case $1 in
        test) extras='[test]' sets='run test' ;;
        *) extras='' sets='run' ;;
    esac
    case $(cat "$venv"/stamp-* 2>/dev/null) in
        "$(identity) "*) say "pyproject.toml or the set of packages changed: installing into .venv" ;;
        *)
            say "first use: making .venv and installing crawlkit into it (about a minute)"
            find "$venv" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} +
            "$python" -m venv "$venv" >&2 </dev/null || fail "could not make $venv (see above)"
            ;;
    esac
    rm -f "$venv"/stamp-*
    wanted=$(checksum)
    (cd "$root" && "$venv/bin/python" -m pip --disable-pip-version-check install -q -e ".$extras") >&2 </dev/null ||
        fail "installing failed (see above); the next use tries again. If a package had to be compiled and could not be," \
            "on Debian and Ubuntu: apt-get install g++ python3-dev libleveldb-dev"
    for set in $sets; do
        printf '%s %s\n' "$(identity)" "$wanted" >"$venv/stamp-$set.new"
        mv "$venv/stamp-$set.new" "$venv/stamp-$set"
    done
}
