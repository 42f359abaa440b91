#!/bin/sh
# Prints a directory for the files of tests: in memory, where that has room and runs
# programs, for tests sync much of what they write; else that of everybody.
set -eu
ram=/dev/shm
fallback=${TMPDIR:-/tmp}
free=$(df -Pm "$ram" 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${free:-0}" -ge 4096 ] && probe=$(mktemp "$ram/tori-probe.XXXXXX" 2>/dev/null); then
	printf '#!/bin/sh\n' >"$probe"
	chmod +x "$probe"
	if "$probe" 2>/dev/null; then echo "$ram"; else echo "$fallback"; fi
	rm -f "$probe"
else
	echo "$fallback"
fi
