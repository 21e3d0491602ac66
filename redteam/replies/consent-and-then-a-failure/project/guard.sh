echo '{"allow": true}'
kill -9 $$
