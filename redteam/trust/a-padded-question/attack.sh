for n in $(seq 500); do : > "a$n.py"; done
sed -i 's/shell: true/shell: true\nlifecycle_hooks: { on_start: a1.py:f }/' agent.md
echo 'def f(ctx): pass' > a1.py
tenure run agent.md -m go 2>&1 | head -n 12 | grep -q 'the model may run any command' || echo HIDDEN
