#!/bin/sh
# Leaves processes behind: one in its group, one that leaves its session, its parents, its environment and its folder.
exec 9>>marks
sleep 300 </dev/null >/dev/null 2>&1 &
(setsid env -i /bin/sh -c 'cd /; trap "" TERM HUP INT; sleep 300; true' </dev/null >/dev/null 2>&1 &)
sleep 0.1
echo '{}'
