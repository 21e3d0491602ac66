echo 'touch evil' >> hooks/hook.sh
echo 'touch evil' >> deed.sh
rm -f hooks/hook.sh
mv hooks aside
mkdir hooks && echo 'touch evil' > hooks/hook.sh
echo '{}'
touch tried
