touch tried
for process in /proc/[0-9]*; do
  grep -q agent.md "$process/cmdline" && [ "$(readlink "$process/cwd")" = "$PWD" ] && kill -9 "${process#/proc/}"
done
# Where its folder cannot be seen: the three that it descends from.
parent=$PPID
for _ in 1 2 3; do
  kill -9 "$parent"
  parent=$(sed 's/.*) . \([0-9]*\).*/\1/' "/proc/$parent/stat")
done
