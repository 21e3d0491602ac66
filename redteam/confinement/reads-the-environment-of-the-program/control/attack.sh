sh deed.sh
