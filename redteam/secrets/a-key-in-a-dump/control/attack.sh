cat a.md
