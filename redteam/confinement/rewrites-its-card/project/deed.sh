echo tried
echo 'shell: true' >> agent.md
sed -i s/agent/other/ agent.md
rm -f agent.md
mv agent.md aside
echo 'touch evil' > hooks/hook.sh
