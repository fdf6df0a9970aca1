# Names and values of what a command and a shell get.
ssh h 'env | sort | grep -vE "^(SSH_CLIENT|SSH_CONNECTION|_|PATH|SHLVL)="'
ssh h 'echo $SHLVL; echo ${SSH_CLIENT%% *}; echo $SSH_CONNECTION | wc -w; umask; pwd; id; ulimit -a'
echo 'env | cut -d= -f1 | sort; umask; pwd; shopt login_shell; echo $0' | ssh -T h
LANG=C.UTF-8 LC_TIME=C COLORTERM=truecolor FOO=no ssh -o 'SendEnv=LANG LC_* COLORTERM FOO' h 'echo $LANG $LC_TIME $COLORTERM $FOO'
ssh -o 'SetEnv=LC_X=set LD_PRELOAD=x PATH=y' h 'echo $LC_X $LD_PRELOAD; true'
