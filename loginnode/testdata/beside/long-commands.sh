# As long as a command line may be, and longer.
ssh h "echo $(head -c 100000 /dev/zero | tr '\0' a) | wc -c"; echo "code $?"
ssh h "true $(head -c 125000 /dev/zero | tr '\0' a)"; echo "code $?"
