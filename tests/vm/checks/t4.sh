#!/bin/sh
# T4: locality under disturbance (targets.md).
# boots: four/6.1 four-small/6.12
# seconds: 240
# needs: actor t4 peers
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

echo "# Own new objects on another node, per cent, by move_pages:"
echo "# |                              |   own | steady | others | moved | new threads |"
t4 "glibc" lose
under $jemalloc t4 "jemalloc"
under $mimalloc t4 "mimalloc"
under $tcmalloc t4 "tcmalloc"
need_numaslab "T4" || exit 0
expect_alive "T4" under $numaslab t4 "numaslab" gate
exit 0
