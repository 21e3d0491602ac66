python3 - <<'END'
head = "---\nname: a\nmodel: passthrough\n"

open("a.md", "w").write(head + "variables: " + "[" * 100_000 + "]" * 100_000 + "\n---\nx\n")
END
for command in check 'trust review .' 'run a.md -m hi'; do
  (ulimit -t 4; ulimit -v 800000; exec timeout 30 tenure $command) > ../out 2>&1
  code=$?
  head -c 3000 ../out
  echo "code $code"
  [ $code -ne 124 ] || echo SLOW
done
