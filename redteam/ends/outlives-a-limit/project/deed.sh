exec 9> marks
sleep 300 < /dev/null > /dev/null 2>&1 &
(setsid env -i /bin/sh -c 'cd /; trap "" TERM HUP INT; sleep 300; true' < /dev/null > /dev/null 2>&1 &)
sleep 0.2
touch tried
sleep 300
