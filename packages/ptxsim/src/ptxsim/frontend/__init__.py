"""PTX text -> syntax trees: lexer, declarations, function bodies, inlining of calls."""
