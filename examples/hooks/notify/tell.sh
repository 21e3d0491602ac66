#!/bin/sh
# Gets the result as JSON; the outcome is a variable too.
cat > told.json
echo "$TENURE_AGENT ended: $TENURE_OUTCOME" >&2
