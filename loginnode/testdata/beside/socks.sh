# -D, and -R as a SOCKS proxy.
serve 127.0.0.1:0 port http; p=$(cat port); s=$(free); r=$(free)
ssh -f -N -M -S ctl -D "$s" -R "$r" h
for proxy in $s $r; do for v in socks4 socks5 socks5-hostname; do curl -sS --max-time 20 --$v 127.0.0.1:$proxy http://127.0.0.1:$p/; echo "code $?"; done; done
curl -sS --max-time 20 --socks5 127.0.0.1:$s http://127.0.0.1:1/ 2> /dev/null; echo "code $?"
for i in $(seq 20); do curl -sS --max-time 20 --socks5 127.0.0.1:$s http://127.0.0.1:$p/ > page.$i & done; wait; cat page.* | sort | uniq -c
ssh -S ctl -O exit h
