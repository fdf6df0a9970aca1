# A window that changes its size.
pty 'ssh h' 'see $ ' 'size 33 77' 'pause' 'send stty size\n' 'see 33 77' 'see $ ' "send exec bash -c 'trap \"stty size; exit 6\" WINCH; echo re\"\"ady; while :; do sleep 0.05; done'\n" 'see ready' 'size 50 132' 'see 50 132' 'end'
pty 'TERM=screen-256color ssh -t h "stty size; tput cols; echo \$TERM"' 'end'
