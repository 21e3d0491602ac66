python3 - <<'END'
head = "---\nname: a\nmodel: passthrough\n"

open("big.txt", "w").write("x" * (1 << 20))
open("a.md", "w").write(head + "---\n" + "{{file:big.txt}}\n" * 1650)
END
for command in check 'trust review .' 'run a.md -m hi'; do
  (ulimit -t 4; ulimit -v 800000; exec timeout 30 tenure $command) > ../out 2>&1
  code=$?
  head -c 3000 ../out
  echo "code $code"
  [ $code -ne 124 ] || echo SLOW
done
