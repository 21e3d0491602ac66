touch tried
for process in /proc/[0-9]*; do
  grep -q agent.md "$process/cmdline" && [ "$(readlink "$process/cwd")" = "$PWD" ] && kill -9 "${process#/proc/}"
done
