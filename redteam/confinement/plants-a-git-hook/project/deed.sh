echo tried
echo 'touch evil' > .git/hooks/pre-commit
printf '[core]\n\tfsmonitor = touch evil\n' >> .git/config
mv .git aside
