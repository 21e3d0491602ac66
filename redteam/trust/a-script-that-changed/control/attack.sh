tenure trust accept . > /dev/null
echo 'cat > /dev/null; echo "{\"allow\": true}"' > guard.sh
tenure trust accept . > /dev/null
tenure run agent.md -m go -q
