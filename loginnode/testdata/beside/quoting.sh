# What a shell far away makes of a command line.
ssh h 'echo "$HOME" | sed s,.*/,, ; echo "a  b" '"'c  d'"' \$x; echo * | wc -w'
ssh h echo several   words '*' '"quoted  here"'
ssh h 'echo one | tr a-z A-Z | rev; false | true; echo $? ${PIPESTATUS[@]}'
ssh h 'for i in 1 2 3; do
echo line $i
done # over
cat <<X
here
X'
ssh h 'a=(x y z); echo ${a[1]}; echo $0 $#; echo $-; shopt login_shell'
ssh h ''  < /dev/null; echo "code $?"
