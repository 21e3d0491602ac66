mine=$HOME
export HOME="$PWD/../stranger"
mkdir "$HOME"
tenure trust accept . > /dev/null
mkdir data
cp -r "$HOME/.local/share/tenure" data/tenure
export HOME="$mine"
XDG_DATA_HOME="$PWD/data" tenure run agent.md -m go -q
