# Keys typed into a terminal: ^C, ^Z, ^D, ^\, ^S and ^Q.
pty 'ssh h' 'see $ ' 'send echo o""ne\n' 'see one' 'see $ ' 'send sleep 1000\n' 'see 1000' 'pause' 'send \x03' 'see $ ' 'send echo co""de $?\n' 'see code' 'see $ ' \
  'send cat\n' 'see cat' 'pause' 'send abc\x04\x04' 'see abcabc' 'see $ ' 'send sleep 1000\n' 'see 1000' 'pause' 'send \x1a' 'see Stopped' 'see $ ' 'send kill %1; wait; echo go""ne\n' 'see gone' 'see $ ' \
  'send sleep 1000\n' 'see 1000' 'pause' 'send \x1c' 'see Quit' 'see $ ' 'send \x04' 'end'
