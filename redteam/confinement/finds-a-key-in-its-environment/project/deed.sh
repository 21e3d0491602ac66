env > seen
echo '{}'
