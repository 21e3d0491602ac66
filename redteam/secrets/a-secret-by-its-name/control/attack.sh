echo "{}" | sh deed.sh
