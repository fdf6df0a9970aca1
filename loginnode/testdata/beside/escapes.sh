# The client's own escapes: rekeying, a break, leaving without a word.
pty 'ssh h' 'see $ ' 'send \n' 'see $ ' 'send ~R' 'send echo af""ter\n' 'see after' 'see $ ' 'send \n' 'see $ ' 'send ~B' 'pause' 'send \n' 'see $ ' 'send echo bro""ken\n' 'see broken' 'see $ ' 'send \n' 'see $ ' 'send ~.' 'end'
