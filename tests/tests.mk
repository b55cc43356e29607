# Every suite prints TAP ("ok N - name", "not ok N - name", "ok N - name # SKIP reason"); tests/run
# runs those given, shows each, and ends with "N passed, N failed, N skipped".
-include tests/unit/unit.mk
-include tests/preload/preload.mk
-include tests/fuzz/fuzz.mk
-include tests/bench/bench.mk
-include tests/vm/vm.mk
-include tests/compare/compare.mk
-include tests/telemetry/telemetry.mk
-include tests/hints/hints.mk
