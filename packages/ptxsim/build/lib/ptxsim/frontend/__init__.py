"""PTX text -> syntax trees: lexer, declarations, function bodies, inlined calls."""
