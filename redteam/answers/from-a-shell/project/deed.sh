tenure answer "$(cat ask)" approve --by ada
