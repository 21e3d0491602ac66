python3 - <<'END'
head = "---\nname: a\nmodel: passthrough\n"

lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 10)]
open("a.md", "w").write(head + "variables:\n  " + "\n  ".join(lines) + "\n---\nx\n")
END
for command in check 'trust review .' 'run a.md -m hi'; do
  (ulimit -t 4; ulimit -v 800000; exec timeout 30 tenure $command) > ../out 2>&1
  code=$?
  head -c 3000 ../out
  echo "code $code"
  [ $code -ne 124 ] || echo SLOW
done
