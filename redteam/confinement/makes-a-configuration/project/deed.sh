echo tried
printf -- '---\nname: b\nmodel: passthrough\nlifecycle_hooks: { on_start: evil.py:start }\n---\nx\n' > b.md
printf 'def start(ctx):\n    open("evil", "w")\n' > evil.py
