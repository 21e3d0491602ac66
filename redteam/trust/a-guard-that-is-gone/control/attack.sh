tenure trust accept . > /dev/null
sed -i '/hooks:/d; /wrap_tool_call/d' agent.md
tenure trust accept . > /dev/null
tenure run agent.md -m go -q
