echo "seen: $BILLING_WEBHOOK" >&2
echo '{}'
