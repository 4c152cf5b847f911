#!/bin/sh
# What is in the image, whichever tool builds it, from Debian and the Python package index alone. As root on Debian 12 or later:
#
#   container.sh SOURCE [PREFIX]      SOURCE: a checkout; PREFIX: where it is installed (default: /opt/mpi-compress)
#
# mpi-compress.def and Containerfile run it; so does tests/test_container.py, without a container.
set -eu
source=$1
prefix=${2:-/opt/mpi_compress}

python3 -m venv "$prefix"                                     # 1. Python's packages, with MPICH, and their bytecode
"$prefix/bin/python" -m pip install --no-cache-dir --quiet "$source[mpich]"

scratch=$(mktemp -d)                                          # 2. kernels, compiled once for this kind of processor
(cd "$scratch" && NUMBA_CACHE_DIR="$prefix/kernels" MPI_COMPRESS_CACHE="$scratch" \
    "$prefix/bin/mpi-compress" run demo --quiet --set stop.rounds=20)
rm -rf "$scratch"

cat > "$prefix/bin/start" <<END                               # 3. what the image runs: kernels go where they can be added to
#!/bin/sh
cache=\${MPI_COMPRESS_CACHE:-\${XDG_CACHE_HOME:-\$HOME/.cache}/mpi_compress}
export NUMBA_CACHE_DIR=\${NUMBA_CACHE_DIR:-\$cache/kernels-of-image}
export PATH=$prefix/bin:\$PATH
if [ ! -d "\$NUMBA_CACHE_DIR" ]; then                         # ranks that start together each copy; the first one counts
    mkdir -p "\$cache"
    mine=\$(mktemp -d "\$cache/kernels.XXXXXX")
    cp -r "$prefix/kernels/." "\$mine"
    mv -T "\$mine" "\$NUMBA_CACHE_DIR" 2>/dev/null || rm -rf "\$mine"
fi
exec mpi-compress "\$@"
END
chmod 755 "$prefix/bin/start"
