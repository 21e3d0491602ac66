(setsid env -i HOME="$HOME" PATH="$PATH" sh -c 'sleep 0.3; tenure answer "$(cat ask)" approve > said 2>&1' < /dev/null > /dev/null 2>&1 &)
sleep 1.5
cat said
