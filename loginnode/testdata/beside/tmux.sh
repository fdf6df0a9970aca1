# A terminal that outlives the connection.
ssh -tt h 'tmux -L walk new -d -s x "echo inside; sleep 1000"; tmux -L walk ls -F "#S #{session_windows}"' < /dev/null
ssh h 'tmux -L walk ls -F "#S"; tmux -L walk capture-pane -p -t x | head -1'
pty 'ssh -t h tmux -L walk attach' 'see inside' 'size 30 90' 'pause' 'send \x02d' 'end' > attached; echo "code $?"; grep -c detached attached
ssh h 'tmux -L walk kill-server'; echo "code $?"
