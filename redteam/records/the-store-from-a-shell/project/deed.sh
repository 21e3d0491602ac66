echo tried
head -c 15 .tenure/tenure.db
echo x >> .tenure/tenure.db
rm -rf .tenure
[ -e .tenure ] || touch gone
